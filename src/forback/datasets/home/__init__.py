"""A simulated home with motion sensors."""
