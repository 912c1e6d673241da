"""How a fit and a run ended: codes that decisions go by, each with the sentence a reader sees.

Nothing in the package decides by searching a sentence, so that sentences are free to improve.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Status(Enum):
    """How a fit ended; the value is the note of its point."""

    CONVERGED = ""
    NO_MINIMISER = "no minimiser within reach (separable data, little or no ridge)"
    UNBOUNDED = "no minimiser: Q is unbounded below on this support"
    MAX_ITER = "not converged after max_iter={max_iter} steps"
    STUCK = "not converged: no step lowers Q"
    INFINITE = "Q is infinite wherever it was evaluated"
    OTHER = "see the note"  #: an objective says something of its own

    @property
    def is_unfinished(self) -> bool:
        """Whether a minimiser may exist that the fit did not reach."""
        return self in (Status.MAX_ITER, Status.STUCK)

    def note(self, *, max_iter: int | None = None) -> str:
        """The sentence for a point whose fit ended so."""
        return self.value.format(max_iter=max_iter)


class StopReason(Enum):
    """Why a run ended; the value is a template of the sentence in ``path.stop_reason``."""

    RUNNING = ""
    SIZE = "size {k} reached"
    THRESHOLD = "the best goodness, {score:.6g}, is below the threshold {threshold:.6g}"
    EXHAUSTED = "no candidate left lowers the objective by more than rounding{why}"
    ALL_IN = "all candidates are selected"
    UNAFFORDABLE = (
        "the best candidate, of {name}, costs {price:g}, more than the remaining budget "
        "({remaining:g} of {budget:g})"
    )
    NOTHING_AFFORDABLE = (
        "no remaining candidate fits the remaining budget ({remaining:g} of {budget:g})"
    )
    NOTHING_AFFORDABLE_HELPS = (
        "no candidate within the remaining budget ({remaining:g} of {budget:g}) lowers the "
        "objective"
    )
    MAX_STEPS = "max_steps={max_steps} reached"
    CALLBACK = "stopped by the callback"
    INTERRUPTED = "interrupted"
    ERROR = "{error}"

    @property
    def is_early(self) -> bool:
        """Whether the run was cut short, perhaps before it was done with its backward steps."""
        return self is StopReason.MAX_STEPS or self.is_from_outside

    @property
    def is_from_outside(self) -> bool:
        """Whether it was ended by something that the algorithm does not know."""
        return self in (StopReason.CALLBACK, StopReason.INTERRUPTED, StopReason.ERROR)

    def because(self, **facts: object) -> Ending:
        """The end of a run for this reason, with its sentence filled in."""
        return Ending(self, self.value.format(**facts))


class Ending(NamedTuple):
    """Why a run ended, as a code and as a sentence."""

    code: StopReason
    sentence: str
