"""Optimisation that knows no model: Newton, BFGS, line search, linear algebra, threads."""
