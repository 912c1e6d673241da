"""The numbers that the paper prints for a1a, a2a and w1a."""

from __future__ import annotations

NAMES = ("a1a", "a2a", "w1a")
SIZES = tuple(range(10, 71, 10))

MEASURES = {
    "objective": "objective",
    "train_error": "training error",
    "test_error": "test error",
}

#: Objective, training error and test error, to three significant digits: where the paper prints
#: 0.17 it has left out a zero.
PRINTED: dict[tuple[str, str], tuple[list[float], list[float], list[float]]] = {
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

#: How many rows the paper says there are, to train on and to test on.
PRINTED_ROWS = {"a1a": (1605, 30956), "a2a": (2205, 30296), "w1a": (2477, 47272)}
