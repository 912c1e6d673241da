"""Generalised linear models: one linear predictor, any pointwise loss."""
