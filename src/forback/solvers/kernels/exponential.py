"""exp(-x) for x >= 0, written so that the compiler vectorises it."""

from __future__ import annotations

import math

import numpy as np

from forback.solvers.kernels.compiled import kernel

#: exp(-x) is not taken further than here, 3e-308: beyond, doubles lose their digits.
UNDERFLOW = 708.0


#: log 2 in two parts, the first of so few bits that its product with a small integer is exact.
LOG_2_HIGH = 6.93147180369123816490e-01
LOG_2_LOW = 1.90821492927058770002e-10

LOG_2 = math.log(2.0)

#: Added to a number below 2^51, this rounds it to an integer and leaves that in the lowest bits.
ROUNDER = 1.5 * 2.0**52

#: The bits of the number 1.
BITS_OF_ONE = 1023 << 52

#: Coefficients of the Taylor series of exp, from the 13th power down.
LAST_TERM = 1.0 / math.factorial(13)
EARLIER_TERMS = tuple(1.0 / math.factorial(power) for power in range(12, -1, -1))


@kernel
def exp_of_minus(x: float) -> float:
    """Return exp(-x) for x >= 0, to the last bit or so.

    The library's own is a call for every row. This is plain arithmetic without branches, which the
    compiler turns into vector instructions: 2^-k times a Taylor series on |r| <= log(2) / 2.
    """
    near = x if x < UNDERFLOW else UNDERFLOW
    shifted = near * (1.0 / LOG_2) + ROUNDER
    k = shifted - ROUNDER
    r = (k * LOG_2_HIGH - near) + k * LOG_2_LOW
    series = LAST_TERM
    for coefficient in EARLIER_TERMS:  # unrolled by the compiler
        series = series * r + coefficient
    exponent = BITS_OF_ONE - (np.float64(shifted).view(np.int64) << 52)
    power = np.int64(exponent).view(np.float64)
    return series * power
