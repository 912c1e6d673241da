"""Files: written atomically, read by a schema."""
