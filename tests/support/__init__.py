"""What several tests share: problems, fakes, a browser."""
