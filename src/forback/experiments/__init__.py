"""What `forback bench` runs: workloads, contestants, and the clockwork between them."""
