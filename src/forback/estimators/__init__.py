"""scikit-learn estimators over `forback.select`."""
