"""Files: written whole or not at all, read by a schema."""
