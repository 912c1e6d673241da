"""Algorithm 1 transcribed slowly and literally, on dense vectors and lists, sharing no code.

The paper's line numbers are in the comments. `Q` offers value(beta), gradient(beta) and
hessian(beta) for dense beta; blocks are lists of coordinates.
"""

import numpy as np
from scipy.optimize import brentq

TIE = 1e-9


def minimise(Q, F, start):
    """beta-hat(F) by damped Newton steps, from a dense start."""
    F = sorted(F)
    beta = np.zeros(Q.dim)
    beta[F] = start[F]
    if not F:
        return beta
    for _ in range(500):
        g = Q.gradient(beta)[F]
        H = Q.hessian(beta)[np.ix_(F, F)]
        scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
        direction = np.zeros(Q.dim)
        scaled = H / np.outer(scale, scale)
        direction[F] = -np.linalg.lstsq(scaled, g / scale, rcond=1e-12)[0] / scale
        expected = -g @ direction[F]
        if expected <= 1e-30 * max(1.0, abs(Q.value(beta))):
            break
        t = 1.0
        if expected > 1e-13 * max(Q.unit, abs(Q.value(beta))):
            while not Q.value(beta + t * direction) <= Q.value(beta) - 1e-4 * t * expected:
                t /= 2
        else:  # too little for values to show; the gradient still can
            before, after = (np.abs(Q.gradient(b)[F] / scale) for b in (beta, beta + direction))
            if after.max() >= 0.5 * before.max():
                break
        beta = beta + t * direction
    return beta


def resolution(Q, beta):
    """A change of Q at beta that may be rounding."""
    rounding = Q.rounding(beta) if hasattr(Q, "rounding") else 0.0
    return 1e-12 * max(0.0 if Q.real else min(Q.unit, 1.0), abs(Q.value(beta))) + rounding


def decrease(Q, beta, block):
    """Q(beta) - min over the block's coordinates, the rest fixed."""
    if len(block) == 1:
        return _decrease_single(Q, beta, block[0])
    restricted = _Shifted(Q, beta)
    moved = minimise(restricted, block, np.zeros(Q.dim))
    return Q.value(beta) - restricted.value(moved)


class _Shifted:
    def __init__(self, Q, beta):
        self.Q, self.beta, self.dim, self.unit = Q, beta, Q.dim, Q.unit

    def value(self, move):
        return self.Q.value(self.beta + move)

    def gradient(self, move):
        return self.Q.gradient(self.beta + move)

    def hessian(self, move):
        return self.Q.hessian(self.beta + move)


def _decrease_single(Q, beta, j):
    e = np.zeros(Q.dim)
    e[j] = 1.0

    def slope(a):
        return Q.gradient(beta + a * e)[j]

    at_zero = slope(0.0)
    if at_zero == 0.0:
        return 0.0
    far = -np.sign(at_zero)
    while slope(far) * at_zero > 0 and abs(far) < 2.0**60:
        far *= 2
    if slope(far) * at_zero > 0:
        return Q.value(beta) - Q.value(beta + far * e)
    a = brentq(slope, min(0.0, far), max(0.0, far), xtol=1e-300, rtol=8.9e-16, maxiter=1000)
    return Q.value(beta) - Q.value(beta + a * e)


def foba(
    Q, blocks, always, *, gradient_rule, backward, ratio=0.5, refit=False, k=None, threshold=0.0,
    affordable=None,
):  # fmt: skip
    """Yield (action, block, chosen, beta) for every step of Algorithm 1.

    `affordable(chosen)` says so of a set of blocks. The run ends where the best block cannot be
    afforded; with `k`, such blocks do not take part.
    """
    F = set()  # 1 (block numbers)
    beta = minimise(Q, always, np.zeros(Q.dim))
    if Q.real:  # a real response has no natural scale; fits take their own
        Q.unit = Q.value(beta)
    gains = {}

    def coordinates(chosen):
        return sorted([*always, *(j for b in chosen for j in blocks[b])])

    while True:  # 2
        if k is not None and len(F) >= k:
            return
        outside = [b for b in range(len(blocks)) if b not in F]
        if affordable is not None and k is not None:
            outside = [b for b in outside if affordable(F | {b})]
        if not outside:
            return
        if gradient_rule:
            g = Q.gradient(beta)
            goodness = {b: np.linalg.norm(g[blocks[b]]) for b in outside}
        else:
            goodness = {b: decrease(Q, beta, blocks[b]) for b in outside}
        negligible = resolution(Q, beta)
        while True:
            if not goodness:
                return
            best = max(goodness.values())
            if best < threshold:  # 4-6
                return
            i = min(b for b in goodness if goodness[b] >= best - TIE * abs(best))  # 8
            if affordable is not None and not affordable(F | {i}):
                return
            trial = minimise(Q, coordinates(F | {i}), beta)  # 9, 10
            if Q.value(beta) - Q.value(trial) > negligible:
                break
            goodness.pop(i)  # refitted in vain; and so on, if need be with all
        F = F | {i}
        gains[len(F)] = Q.value(beta) - Q.value(trial)  # 11
        beta = trial  # 12
        yield "add", i, set(F), beta
        while backward and F:  # 14
            if gains[len(F)] <= resolution(Q, beta):
                break
            badness = {}
            for b in sorted(F):
                if refit:
                    without = minimise(Q, coordinates(F - {b}), beta)
                else:
                    without = beta.copy()
                    without[blocks[b]] = 0.0
                badness[b] = Q.value(without) - Q.value(beta)
            least = min(badness.values())
            i = min(b for b in badness if badness[b] <= least + TIE * abs(least))  # 18
            if max(badness[i], 0.0) >= ratio * gains[len(F)]:  # 15-17
                break
            F = F - {i}  # 19, 20
            beta = minimise(Q, coordinates(F), beta)  # 21
            yield "remove", i, set(F), beta
