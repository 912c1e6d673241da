"""The paper again: every table and figure, `python -m experiments`."""
