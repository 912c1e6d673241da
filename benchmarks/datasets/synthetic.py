"""The workloads of `forback bench` that are made from random numbers."""

from benchopt import BaseDataset
from experiments.workloads import WORKLOADS


class Dataset(BaseDataset):
    name = "synthetic"
    requirements = ["pip::forback[experiments]"]
    parameters = {
        "workload": [name for name in WORKLOADS if name not in ("a9a", "w8a")],
        "size": ["full"],
    }
    test_parameters = {"workload": ["ls-gaussian", "logistic-gaussian"], "size": ["small"]}

    def get_data(self):
        workload = WORKLOADS[self.workload]
        if self.size == "small":
            workload = workload.quick()
        return vars(workload.problem(self.get_seed(use_repetition=False)))
