"""Data sets to try the library on, simulated and public: homes, sequences, graphs, tables."""

from forback.datasets.home.simulate import Home, make_home
from forback.datasets.public import Cytometry, LibsvmData, load_cytometry, load_libsvm
from forback.datasets.sensor_logs.load import SensorLog, load_sensor_log
from forback.datasets.synthetic.chain import Chain, make_chain
from forback.datasets.synthetic.graph import Graph, make_graph
from forback.datasets.synthetic.tables import Regression, TwoClasses, make_correlated, make_logistic

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
