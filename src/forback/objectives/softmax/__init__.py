"""Softmax regression: a linear predictor for each class."""
