"""How X is stored, dense or sparse, and seen, standardised or not: the only package that knows."""
