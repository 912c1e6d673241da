"""Compiled loops that several families share; only packages called kernels see numba."""
