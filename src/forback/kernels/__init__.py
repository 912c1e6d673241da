"""The inner loops that are not matrix products, compiled by numba: plain functions of arrays."""
