"""The page of results and its figures."""
