"""Tolerances that more than one package uses: what counts as rounding, as a tie, as singular."""

from __future__ import annotations

#: The distance from 1 to the next larger number in double precision.
EPS = 2.0**-52

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

#: Divisors are kept above this, so that a quotient of ordinary numbers never overflows.
SMALLEST_DIVISOR = 1e-300

#: Where a loss saturates, a step that overflows is cut to one that moves no eta further than this.
MAX_ETA_STEP = 20.0

#: A line search accepts a step that gains this fraction of what the slope at its start promises.
SUFFICIENT_DECREASE = 1e-4

#: A fit is stuck, not converged, if it misses a gain of so many times the negligible one.
STUCK_GAIN_RATIO = 1e6

#: Steps of a search for the minimum along one coordinate, at most.
LINE_MAX_ITER = 200

#: Newton's method along a line ends when its step is this small relative to the whole distance: the
#: decrease is then exact to about the square of it.
LINE_STEP_RTOL = 1e-7

#: So many decimals of a decrease along a line are exact: what is left to gain is below this
#: fraction of it.
DECREASE_RTOL = 1e-11

#: Along a line, a gain is done with when less than this fraction of the negligible one is left.
NEGLIGIBLE_FRACTION = 1e-3

#: A decrease must miss the best by more than this, relatively, to be ruled out.
RULED_OUT_RTOL = 1e-6
