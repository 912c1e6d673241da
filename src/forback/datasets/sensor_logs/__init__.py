"""Public logs of sensors in homes."""
