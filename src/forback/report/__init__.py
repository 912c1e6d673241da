"""What readers see: tables."""
