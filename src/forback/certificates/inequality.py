"""A statement left <= right of the paper, with the numbers of a run in it."""

from __future__ import annotations

from dataclasses import dataclass

#: What rounding may add to the left of an inequality, relatively.
LEFT_SIDE_RTOL = 1e-9


@dataclass(frozen=True)
class Inequality:
    """A statement left <= right of the paper, with the numbers of a run in it.

    Attributes
    ----------
    source : str
    name : str
    left : float
        What the run came to.
    right : float
        What the theorem promises.
    rounding : float
        By how much the left side may be off.
    """

    source: str
    name: str
    left: float
    right: float
    rounding: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether left <= right, up to rounding."""
        allowed = LEFT_SIDE_RTOL * abs(self.right) + self.rounding
        return self.left <= self.right or self.left - self.right <= allowed

    def __str__(self) -> str:
        sign = "<=" if self.left <= self.right else "<= (up to rounding)"
        sign = sign if self.holds else "> (!)"
        return f"{self.source}, {self.name}: {self.left:.4g} {sign} {self.right:.4g}"
