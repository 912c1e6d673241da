"""Compiled loops of covariance selection."""
