"""Data to try things on: a simulated smart home, the paper's synthetic chain, real sensor logs."""

from forback.datasets.chain import Chain, make_chain
from forback.datasets.home import Home, make_home
from forback.datasets.logs import SensorLog, load_sensor_log

__all__ = ["Chain", "Home", "SensorLog", "load_sensor_log", "make_chain", "make_home"]
