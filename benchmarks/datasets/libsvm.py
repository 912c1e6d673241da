"""The workloads of `forback bench` that are real files, in the folder named by FORBACK_DATA."""

from benchopt import BaseDataset
from experiments.workloads import WORKLOADS


class Dataset(BaseDataset):
    name = "libsvm"
    requirements = ["pip::forback[experiments]"]
    parameters = {"workload": ["a9a", "w8a"]}

    def get_data(self):
        return vars(WORKLOADS[self.workload].problem())
