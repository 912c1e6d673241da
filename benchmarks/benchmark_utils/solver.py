"""A contestant of `forback bench` as a benchopt solver."""

from benchopt import BaseSolver
from experiments.contestants import CONTESTANTS
from experiments.workloads import Unavailable


class ContestantSolver(BaseSolver):
    """Prepares outside the clock, runs once to warm up, then is timed."""

    requirements = ["pip::forback[experiments]"]
    contestant: str

    def skip(self, problem):
        try:
            CONTESTANTS[self.contestant].prepare(problem)
        except Unavailable as reason:
            return True, str(reason)
        return False, None

    def set_objective(self, problem):
        self.choose = CONTESTANTS[self.contestant].prepare(problem)

    def warm_up(self):
        self.run_once()

    def run(self, _):
        self.choice = self.choose()

    def get_result(self):
        return {"support": self.choice.support}
