"""Data to try things on: homes, sequences, graphs and classes, simulated and real."""

from forback.datasets.chain import Chain, make_chain
from forback.datasets.graphs import Cytometry, Graph, load_cytometry, make_graph
from forback.datasets.home import Home, make_home
from forback.datasets.libsvm import LibsvmData, load_libsvm
from forback.datasets.logs import SensorLog, load_sensor_log
from forback.datasets.tabular import Regression, TwoClasses, make_correlated, make_logistic

__all__ = [
    "Chain",
    "Cytometry",
    "Graph",
    "Home",
    "LibsvmData",
    "Regression",
    "SensorLog",
    "TwoClasses",
    "load_cytometry",
    "load_libsvm",
    "load_sensor_log",
    "make_chain",
    "make_correlated",
    "make_graph",
    "make_home",
    "make_logistic",
]
