"""Is it slower than it was? Base and head take turns."""
