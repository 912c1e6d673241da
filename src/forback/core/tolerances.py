"""Tolerances that more than one room uses: what counts as rounding, as a tie, as singular."""

from __future__ import annotations

#: A change of Q below this fraction of it is never progress.
NEGLIGIBLE = 1e-12

#: Scores this close to the best, relatively, are ties: the lowest block wins.
SCORE_TIE_RTOL = 1e-9

#: Screening keeps scores this close to the best exact, so that ties are broken elsewhere.
SCREENING_RTOL = 1e-8

#: A sum of prices may exceed its budget by this fraction, which is rounding.
BUDGET_RTOL = 1e-12

#: A factor of the Hessian, scaled to unit diagonal, is trusted if its squared pivots exceed this.
ILL_CONDITIONED = 1e-10

#: A gain this small, relative to Q, is rounding even if the gradient does not look small.
ROUNDING = 1e-24

#: A Hessian serves for another step if the last one shrank the gradient to less than this share.
SHRINKS = 1e-2

#: A step that moves some eta by more than this is not the last one, where a loss saturates.
FAR = 0.1
