"""Random and hostile runs against independent references: see `harness`."""
