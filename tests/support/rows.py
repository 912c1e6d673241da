"""Rows of experiments, as the parts give them."""


def where(rows, **values):
    """The rows that have these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in values.items())]
