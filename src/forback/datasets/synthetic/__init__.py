"""Simulated data with a known truth: sequences, tables and Gaussian graphs."""
