"""The simulated home: its rooms, doors, furniture and sensors. Lengths are metres.

    0        3    4.4        8            12
  9 +-----------------+------+-------------+
    |  bedroom        | study|             |
    |                 |      | living room |
5.1 +------- ---------+-- ---+             |
 ->           hallway                      |
3.9 +---- --+- ---+--- ------+   (table)   |
    |  bath | wc  | kitchen                |
  0 +-------+-----+----------+-------------+
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from forback.core.types import Floats, Ints

Spot = tuple[float, float]

#: Rooms as name -> (x0, y0, x1, y1).
ROOMS: dict[str, tuple[float, float, float, float]] = {
    "bathroom": (0.0, 0.0, 3.0, 3.9),
    "toilet": (3.0, 0.0, 4.4, 3.9),
    "kitchen": (4.4, 0.0, 8.0, 3.9),
    "hallway": (0.0, 3.9, 8.0, 5.1),
    "bedroom": (0.0, 5.1, 4.6, 9.0),
    "study": (4.6, 5.1, 8.0, 9.0),
    "living room": (8.0, 0.0, 12.0, 9.0),
}
#: The door between each room and the hallway.
DOORS: dict[str, Spot] = {
    "bathroom": (1.8, 3.9),
    "toilet": (3.6, 3.9),
    "kitchen": (6.2, 3.9),
    "bedroom": (3.0, 5.1),
    "study": (5.6, 5.1),
    "living room": (8.0, 4.5),
}
#: The opening between kitchen and living room, by the dinner table.
HATCH: Spot = (8.0, 2.4)
#: The y coordinate of the middle of the hallway.
HALLWAY_Y = 4.5
#: Inside the front door.
ENTRANCE: Spot = (0.3, 4.5)

#: Ceiling sensors, each of which covers an ellipse: its centre (x, y), its two semi-axes, and the
#: angle of the first in degrees, anticlockwise from the x axis. Most places are covered by two or
#: three sensors; a few cover places where nobody stays (the hallway's far end, corners, windows).
SENSORS: Floats = np.array(
    [
        # living room: sofa in the north, dinner table in the south
        (10.6, 7.5, 1.7, 1.2, 0.0),
        (9.6, 2.3, 1.4, 1.4, 0.0),
        (9.2, 6.4, 1.8, 1.2, 30.0),
        (10.2, 7.0, 2.1, 1.7, 20.0),
        (8.8, 4.5, 1.4, 1.8, 0.0),
        (11.3, 8.4, 1.0, 0.9, 0.0),
        (10.2, 2.9, 1.8, 1.4, -20.0),
        (11.4, 4.6, 0.9, 1.7, 0.0),
        (8.7, 2.0, 1.4, 1.5, 0.0),
        (11.5, 0.6, 0.9, 0.9, 0.0),
        (10.3, 5.2, 1.5, 1.0, 0.0),
        # study: desk in the north-east
        (6.9, 8.0, 1.4, 1.2, 0.0),
        (6.5, 7.6, 1.8, 1.5, 45.0),
        (5.6, 6.0, 1.2, 1.5, 0.0),
        (5.0, 8.5, 0.8, 0.9, 0.0),
        (7.6, 6.2, 0.8, 1.4, 0.0),
        # bedroom: bed in the north-west
        (1.2, 7.7, 1.7, 1.2, 0.0),
        (1.6, 7.3, 2.0, 1.5, 15.0),
        (3.1, 6.0, 1.4, 1.4, 0.0),
        (3.9, 8.4, 1.0, 0.9, 0.0),
        (0.6, 5.7, 0.9, 0.9, 0.0),
        # kitchen: kettle, sink and stove along the south wall
        (5.1, 0.9, 0.9, 1.0, 0.0),
        (6.1, 0.8, 1.0, 1.2, 0.0),
        (7.2, 0.8, 1.0, 1.0, 0.0),
        (6.0, 1.2, 2.2, 1.5, 0.0),
        (6.7, 1.2, 1.8, 1.5, 0.0),
        (6.2, 3.0, 1.5, 1.4, 0.0),
        (7.6, 2.6, 0.9, 1.2, 0.0),
        (4.7, 3.5, 0.8, 0.8, 0.0),
        # hallway, from the entrance on
        (0.6, 4.5, 1.0, 0.9, 0.0),
        (1.8, 4.5, 1.4, 0.9, 0.0),
        (3.4, 4.5, 1.4, 0.9, 0.0),
        (5.8, 4.5, 1.7, 0.9, 0.0),
        (7.4, 4.5, 1.2, 0.9, 0.0),
        # toilet
        (3.7, 0.9, 1.0, 1.2, 0.0),
        (3.7, 2.8, 0.9, 1.5, 0.0),
        # bathroom: tub in the south-west, basin in the south-east
        (0.8, 0.8, 1.2, 1.2, 0.0),
        (1.4, 1.1, 2.1, 1.4, 0.0),
        (2.4, 1.4, 0.9, 1.2, 0.0),
        (1.7, 3.0, 1.4, 1.4, 0.0),
    ]
)


def room_of(spots: Floats) -> Ints:
    """Return the number of the room that each spot, shape (n, 2), is in; -1 outside."""
    rooms = np.full(len(spots), -1, dtype=np.intp)
    x, y = spots.T
    for number, (x0, y0, x1, y1) in enumerate(ROOMS.values()):
        rooms[(x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)] = number
    return rooms


def sensitivity(spots: Floats) -> Floats:
    """Return how well each sensor sees each spot, shape (n, 40).

    The sensitivity is 1 at the sensor's centre, falls with the square of the distance and is 0
    outside its ellipse or in another room.

    Examples
    --------
    >>> seen = sensitivity(np.array([[10.6, 7.5], [-1.0, -1.0]]))
    >>> float(seen[0, 0]), (seen > 0).sum(axis=1)
    (1.0, array([2, 0]))
    """
    x, y, radius, other_radius, degrees = SENSORS.T
    angle = np.deg2rad(degrees)
    dx = spots[:, :1] - x
    dy = spots[:, 1:] - y
    along = (dx * np.cos(angle) + dy * np.sin(angle)) / radius
    across = (dy * np.cos(angle) - dx * np.sin(angle)) / other_radius
    same_room = room_of(spots)[:, None] == room_of(SENSORS[:, :2])
    seen: Floats = np.maximum(1.0 - along**2 - across**2, 0.0) * same_room
    return seen


def route(start: Spot, goal: Spot) -> list[Spot]:
    """Return the corners of the walk from one spot to another, through the doors.

    Examples
    --------
    >>> route((1.2, 7.7), (0.7, 0.7))
    [(1.2, 7.7), (3.0, 5.1), (3.0, 4.5), (1.8, 4.5), (1.8, 3.9), (0.7, 0.7)]
    """
    names = list(ROOMS)
    here, there = (names[room] for room in room_of(np.array([start, goal])))
    if here == there:
        return [start, goal]
    if {here, there} == {"kitchen", "living room"}:
        return [start, HATCH, goal]
    out = [DOORS[here], (DOORS[here][0], HALLWAY_Y)] if here in DOORS else []
    into = [(DOORS[there][0], HALLWAY_Y), DOORS[there]] if there in DOORS else []
    return [corner for corner, _ in groupby([start, *out, *into, goal])]
