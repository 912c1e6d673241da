"""Functions written in JAX: the only package that imports it."""
