"""The paper's theory made usable: curvature, thresholds, bounds, and answers checked again."""

from forback.certificates.bounds import Bounds, sufficient_s, theory_bounds
from forback.certificates.certificate import Certificate, Check, certificate
from forback.certificates.curvature import Curvature, restricted_curvature
from forback.certificates.inequality import Inequality
from forback.certificates.swaps import Swaps, best_swap
from forback.certificates.thresholds import Thresholds, theory_thresholds

__all__ = [
    "Bounds",
    "Certificate",
    "Check",
    "Curvature",
    "Inequality",
    "Swaps",
    "Thresholds",
    "best_swap",
    "certificate",
    "restricted_curvature",
    "sufficient_s",
    "theory_bounds",
    "theory_thresholds",
]
