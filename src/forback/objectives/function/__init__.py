"""Any smooth convex function, from callables or from JAX."""
