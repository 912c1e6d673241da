"""Data to try things on: homes, sequences, graphs and classes, simulated and real."""

from forback.datasets.home.simulate import Home, make_home
from forback.datasets.public import Cytometry, LibsvmData, load_cytometry, load_libsvm
from forback.datasets.sensor_logs.load import SensorLog, load_sensor_log
from forback.datasets.synthetic import (
    Chain,
    Graph,
    Regression,
    TwoClasses,
    make_chain,
    make_correlated,
    make_graph,
    make_logistic,
)

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
