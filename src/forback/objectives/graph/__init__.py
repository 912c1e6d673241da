"""Covariance selection: Gaussian graphical models with few edges."""
