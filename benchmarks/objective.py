"""Q refitted on the columns a solver chose: only the objective scores, in double precision."""

import numpy as np
from benchopt import BaseObjective
from experiments.contestants import refit
from experiments.workloads import Problem


class Objective(BaseObjective):
    name = "At most k features"
    min_benchopt_version = "1.10"
    requirements = ["pip::forback[experiments]"]
    sampling_strategy = "run_once"
    test_config = {"dataset": {"name": "synthetic", "workload": "ls-gaussian", "size": "small"}}

    def set_data(self, X, y, loss, k, ridge):
        self.problem = Problem(X, y, loss, k, ridge)

    def get_objective(self):
        return {"problem": self.problem}

    def evaluate_result(self, support):
        if support is None:  # the task was not to choose
            return {"value": np.nan, "features": 0}
        point = refit(self.problem, support)
        return {"value": point.value, "features": point.size}

    def get_one_result(self):
        return {"support": np.arange(self.problem.k)}
