"""The vocabulary, read first: the words of the paper. Imports NumPy and SciPy only."""
