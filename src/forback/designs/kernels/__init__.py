"""Compiled passes over X."""
