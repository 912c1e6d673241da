"""Functions written in JAX: the only room that imports it."""
