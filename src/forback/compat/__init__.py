"""The interfaces of other packages, with forback behind them."""
