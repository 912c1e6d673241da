"""Data to try things on: homes, sequences and graphs, simulated and real."""

from forback.datasets.chain import Chain, make_chain
from forback.datasets.graphs import Cytometry, Graph, load_cytometry, make_graph
from forback.datasets.home import Home, make_home
from forback.datasets.logs import SensorLog, load_sensor_log

__all__ = [
    "Chain",
    "Cytometry",
    "Graph",
    "Home",
    "SensorLog",
    "load_cytometry",
    "load_sensor_log",
    "make_chain",
    "make_graph",
    "make_home",
]
