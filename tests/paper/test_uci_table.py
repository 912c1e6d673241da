"""The paper's table of a1a, a2a and w1a: objective, training and test error for S = 10 .. 70.

The printed objectives are sums: n times our Q with ridge = 1e-4 / n, no intercept. A score of
exactly 0 counts as half an error. The printed errors have three digits.
"""

import lzma
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from forback import select
from forback.objectives import Logistic

SIZES = range(10, 71, 10)

PRINTED = {
    ("a1a", "foba-obj"): (
        [556, 517, 499, 490, 484, 481, 480],
        [0.169, 0.163, 0.151, 0.150, 0.146, 0.140, 0.138],
        [0.165, 0.163, 0.162, 0.162, 0.162, 0.166, 0.166],
    ),
    ("a1a", "foba-gdt"): (
        [558, 529, 515, 509, 494, 484, 480],
        [0.170, 0.160, 0.145, 0.146, 0.141, 0.141, 0.139],
        [0.164, 0.160, 0.158, 0.159, 0.161, 0.161, 0.163],
    ),
    ("a2a", "foba-obj"): (
        [870, 801, 775, 758, 749, 743, 740],
        [0.191, 0.180, 0.172, 0.162, 0.163, 0.162, 0.162],
        [0.174, 0.163, 0.165, 0.163, 0.162, 0.163, 0.163],
    ),
    ("a2a", "foba-gdt"): (
        [836, 810, 790, 776, 764, 750, 742],
        [0.185, 0.177, 0.168, 0.167, 0.166, 0.161, 0.158],
        [0.160, 0.157, 0.156, 0.155, 0.157, 0.160, 0.161],
    ),
    ("w1a", "foba-obj"): (
        [574, 424, 341, 288, 238, 215, 198],
        [0.135, 0.0969, 0.0813, 0.0704, 0.0600, 0.0547, 0.0511],
        [0.142, 0.110, 0.0993, 0.0890, 0.0832, 0.0814, 0.0776],
    ),
    ("w1a", "foba-gdt"): (
        [595, 487, 395, 337, 282, 226, 206],
        [0.125, 0.0959, 0.0805, 0.0715, 0.0658, 0.0553, 0.0511],
        [0.127, 0.104, 0.0923, 0.0853, 0.0825, 0.0818, 0.0775],
    ),
}
FOLDERS = {"a1a": ("libsvm-adult", 123), "a2a": ("libsvm-adult", 123), "w1a": ("libsvm-web", 300)}


def load(data_folder, name, part=""):
    folder, p = FOLDERS[name]
    file = data_folder / folder / (name + part + (".xz" if part else ""))
    if not file.is_file():
        pytest.skip(f"{folder}/{file.name} is absent")
    content = file.read_bytes()
    if part:
        content = lzma.decompress(content)
    return load_svmlight_file(BytesIO(content), n_features=p)


def error_rate(X, y, beta):
    margin = y * (X @ beta)
    return float(np.mean(np.where(margin == 0, 0.5, margin < 0)))


@pytest.fixture(scope="module")
def paths(data_folder):
    cache = {}

    def path(name, method):
        if (name, method) not in cache:
            X, y = load(data_folder, name)
            objective = Logistic(X, y, ridge=1e-4 / len(y))
            cache[name, method] = select(objective, k=70, method=method), X, y
        return cache[name, method]

    return path


@pytest.mark.parametrize(("name", "method"), [key for key in PRINTED if key[0] != "w1a"])
def test_objectives_and_errors_are_the_printed_ones(paths, data_folder, name, method):
    path, X, y = paths(name, method)
    X_test, y_test = load(data_folder, name, ".t")
    objectives, training, test = PRINTED[name, method]
    for k, objective, train_error, test_error in zip(
        SIZES, objectives, training, test, strict=True
    ):
        point = path.first(k)
        beta = point.dense(path.dim)
        assert abs(len(y) * point.value - objective) <= 1.0, k
        assert error_rate(X, y, beta) == pytest.approx(train_error, abs=6e-4), k
        assert error_rate(X_test, y_test, beta) == pytest.approx(test_error, abs=6e-4), k


@pytest.mark.parametrize("method", ["foba-obj", "foba-gdt"])
def test_w1a_lands_a_few_percent_above_the_printed_objectives(paths, method):
    """An exact implementation does not reproduce w1a; how far off it is, is what is asserted."""
    path, _, y = paths("w1a", method)
    ours = np.array([len(y) * path.first(k).value for k in SIZES])
    printed = np.array(PRINTED["w1a", method][0])
    assert np.all(ours / printed > 0.98)
    assert np.all(ours / printed < 1.05)


@pytest.mark.parametrize("name", ["a1a", "a2a", "w1a"])
def test_every_point_of_these_paths_is_optimal(paths, name):
    path, X, y = paths(name, "foba-gdt")
    objective = Logistic(X, y, ridge=1e-4 / len(y))
    for point in path.points[1::10]:
        gradient = objective.gradient(point)[point.support]
        assert np.all(np.abs(gradient) <= 1e-8 * objective.gradient_scale(point.support))


def markdown_table(data_folder):
    """Ours beside the printed figures: what `docs/uci-table.md` shows."""
    lines = [
        "| data | method | S | objective | printed | training error | printed "
        "| test error | printed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, method), printed in PRINTED.items():
        (X, y), (X_test, y_test) = load(data_folder, name), load(data_folder, name, ".t")
        path = select(Logistic(X, y, ridge=1e-4 / len(y)), k=70, method=method)
        for k, objective, training, test in zip(SIZES, *printed, strict=True):
            point = path.first(k)
            beta = point.dense(path.dim)
            lines.append(
                f"| {name} | {method} | {k} | {len(y) * point.value:.1f} | {objective} "
                f"| {error_rate(X, y, beta):.4f} | {training} "
                f"| {error_rate(X_test, y_test, beta):.4f} | {test} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown_table(Path(sys.argv[1])))
