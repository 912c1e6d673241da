"""Compiled recursions along sequences."""
