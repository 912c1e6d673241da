"""Files of paths, mutated: they are refused by the name of a field, or they are paths."""

import copy
import json
import os

import numpy as np

from forback import Path, select
from forback.objectives import LeastSquares, Multinomial
from forback.selection import path_file
from hostile.harness import attack, pick

VALUES = (
    None, True, False, -1, 0, 1, 2, -5, 0.5, 1e308, 1e-320, 10**25, -(10**25), float("nan"),
    float("inf"), "", "x", "add", "remove", [], [0], [[1]], [1, 0], {}, {"a": 1}, [0.5], ["0"],
)  # fmt: skip


def a_path(rng):
    n, p = 30, int(rng.integers(2, 7))
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    if rng.integers(3) == 0:
        objective = Multinomial(X, np.arange(n) % 3, ridge=0.1)
        return select(objective, method=pick(rng, ["foba-gdt", "foba-obj"]))
    options = {}
    if rng.integers(2):
        options = {"groups": [int(g) for g in rng.integers(0, 3, size=p)],
                   "by": pick(rng, ["group", "feature"])}  # fmt: skip
    return select(LeastSquares(X, X[:, 0] + rng.normal(size=n), fit_intercept=True), **options)


def spots(content, here=()):
    """Every place in a JSON value."""
    yield here
    inside = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inside:
        if isinstance(value, dict | list):
            yield from spots(value, (*here, key))
        else:
            yield (*here, key)


def mutate(content, rng):
    places = [spot for spot in spots(content) if spot]
    for _ in range(int(rng.integers(1, 4))):
        spot = pick(rng, places)
        inside = content
        try:
            for key in spot[:-1]:
                inside = inside[key]
            kind = int(rng.integers(5))
            if kind == 0:
                del inside[spot[-1]]
            elif kind == 1 and isinstance(inside, list):
                inside.insert(spot[-1], copy.deepcopy(inside[spot[-1]]))
            elif kind == 2 and isinstance(inside[spot[-1]], int | float):
                inside[spot[-1]] = inside[spot[-1]] * pick(rng, [-1, 2, 1.5, 0])
            elif kind == 3 and isinstance(inside, dict):
                inside[pick(rng, ["extra", "points", "value"])] = pick(rng, VALUES)
            else:
                inside[spot[-1]] = copy.deepcopy(pick(rng, VALUES))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation took the place away
    return content


def load(text):
    """Loaded, or refused by a ValueError; and whatever was loaded is a path that can be saved."""
    file = "path.json"
    try:
        with open(file, "wb") as stream:
            stream.write(text)
        try:
            path = Path.load(file)
        except ValueError as error:
            if "is not a path saved by forback: " not in str(error):
                raise
            return None
        for point in [*path.points, *(own for down in path.descents for own in down.points)]:
            assert point.support.dtype == np.intp
            assert not point.coef.flags.writeable
            point.dense(path.dim)
        repr(path), [path[size] for size in path.sizes], path.to_frame()
        [path.groups(point) for point in path.points]
        path.save(file)
        assert path_file.dumps(Path.load(file)) == path_file.dumps(path)
        return path
    finally:
        os.unlink(file)


@attack
def mutated_files(rng):
    content = json.loads(path_file.dumps(a_path(rng)))
    load(json.dumps(mutate(content, rng)).encode())


@attack
def mutated_bytes(rng):
    text = bytearray(path_file.dumps(a_path(rng)).encode())
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(text))) if text else 0
        kind = int(rng.integers(4))
        if kind == 0:
            text[place : place + 1] = bytes([int(rng.integers(256))])
        elif kind == 1:
            del text[place : place + int(rng.integers(1, 20))]
        elif kind == 2:
            text[place:place] = bytes(pick(rng, ["[", "{", '"', "9", "-", "e99", "\x00"]), "ascii")
        else:
            text = text[: max(place, 1)]
    load(bytes(text))


@attack
def mutated_descents(rng):
    """The same with a path that has been refined, in what refinement added to it."""
    n, p = 30, int(rng.integers(4, 8))
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    options = {"groups": [j // 2 for j in range(p)]} if rng.integers(2) else {}
    objective = LeastSquares(X, X @ rng.normal(size=p) + rng.normal(size=n))
    content = json.loads(path_file.dumps(select(objective, 2, refine="swap", **options)))
    whole = {**content, "descents": mutate(content["descents"], rng)}
    load(json.dumps(whole).encode())


@attack
def saved_files(rng):
    path = a_path(rng)
    loaded = load(path_file.dumps(path).encode())
    assert loaded is not None, "an honest file was refused"
    assert path_file.dumps(loaded) == path_file.dumps(path)
