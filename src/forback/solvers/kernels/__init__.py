"""Compiled loops that several families share; the only rooms that see numba are called kernels."""
