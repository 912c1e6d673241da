"""Compiled loops of generalised linear models."""
