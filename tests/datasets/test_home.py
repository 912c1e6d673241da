"""The simulated home: shares, determinism, what sensors may and may not do."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.linear_model import LogisticRegression

from forback.datasets import make_home
from forback.datasets.home.floorplan import ROOMS, SENSORS, room_of, route, sensitivity
from forback.datasets.home.routine import ACTIVITIES, NAMES, plan, shares
from forback.datasets.home.walking import SPEED, motions


@pytest.fixture(scope="module")
def home():
    return make_home()


def realised(y):
    return np.array([(y == name).mean() for name in NAMES])


def test_shapes_and_types(home):
    assert home.X.shape == (20_000, 40)
    assert home.X.dtype == np.uint8
    assert set(np.unique(home.X)) == {0, 1}
    assert home.y.shape == home.timestamps.shape == (20_000,)
    assert (np.diff(home.timestamps) == np.timedelta64(10, "s")).all()
    assert len(home.sensor_names) == len(set(home.sensor_names)) == 40
    assert home.positions.shape == (40, 2)
    assert home.ellipses.shape == (40, 3)
    assert (home.ellipses[:, :2] > 0).all()
    assert set(home.places) == set(NAMES)
    x0, y0, x1, y1 = np.array(list(home.rooms.values())).T
    for x, y in [*home.positions, *home.places.values()]:
        assert ((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)).any()


def test_same_seed_same_home(home):
    again = make_home()
    np.testing.assert_array_equal(again.X, home.X)
    np.testing.assert_array_equal(again.y, home.y)
    assert (make_home(random_state=1).X != home.X).any()
    by_generator = make_home(random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(by_generator.X, home.X)
    assert make_home(5, random_state=None).X.shape == (5, 40)


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_home(200, random_state=None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_shares_follow_the_table_and_halves_have_everything(home):
    np.testing.assert_allclose(realised(home.y), shares(), rtol=0.3, atol=0.003)
    for half in np.array_split(home.y, 2):
        assert set(half) == set(NAMES)


@pytest.mark.parametrize("seconds", [200_000.0, 270_000.0])
def test_shares_do_not_depend_on_luck(seconds):
    for seed in range(20):
        episodes = plan(seconds, np.random.default_rng(seed))
        total = np.zeros(len(NAMES))
        for episode in episodes:
            total[episode.activity] += episode.end - episode.start
        np.testing.assert_allclose(total / seconds, shares(), rtol=0.3, atol=0.015)
        for first, second in ((0, seconds / 2), (seconds / 2, seconds)):
            seen = {e.activity for e in episodes if e.start < second and e.end > first}
            assert len(seen) == len(NAMES)


def test_episodes_fill_the_time_and_are_of_plausible_length():
    episodes = plan(300_000.0, np.random.default_rng(3))
    assert episodes[0].start == 0.0
    assert episodes[-1].end == 300_000.0
    assert all(a.end == b.start for a, b in pairwise(episodes))
    lengths = {name: [] for name in NAMES}
    for episode in episodes:
        lengths[NAMES[episode.activity]].append(episode.end - episode.start)
    assert max(lengths["Sleeping"]) > 3 * 3600
    assert max(lengths["Using Toilet"]) < 600
    for activity in ACTIVITIES[1:]:
        assert max(lengths[activity.name]) <= 60 * activity.minutes * 2


@pytest.mark.parametrize("seconds", [0.5, 10.0, 600.0, 86_400.0])
def test_short_plans_are_filled_too(seconds):
    episodes = plan(seconds, np.random.default_rng(0))
    assert (episodes[0].start, episodes[-1].end) == (0.0, seconds)


def test_the_size_of_the_paper():
    home = make_home(270_000, interval=1.0)
    np.testing.assert_allclose(realised(home.y), shares(), rtol=0.3, atol=0.003)
    n_distinct = len({row.tobytes() for row in np.packbits(home.X, axis=1)})
    assert 50 < n_distinct < 10_000


@pytest.mark.parametrize(("interval", "dead_time"), [(1.0, 5.0), (0.5, 2.25), (1.0, 2.5)])
def test_a_sensor_rests_after_firing(interval, dead_time):
    home = make_home(30_000, interval=interval, dead_time=dead_time, false_alarms=100)
    for column in home.X.T:
        gaps = np.diff(np.flatnonzero(column)) * interval
        assert (gaps >= dead_time).all()
    restless = make_home(30_000, interval=interval, dead_time=0.0, false_alarms=100)
    assert restless.X.sum() > home.X.sum()


def test_noise_and_false_alarms_do_what_they_say():
    clear = make_home(noise=0.0, false_alarms=0.0)
    missed = make_home(noise=0.8, false_alarms=0.0)
    assert missed.X.sum() < 0.6 * clear.X.sum()
    away = clear.y == "Out of Home"
    settled = away & np.roll(away, 3) & np.roll(away, -3)  # not on the way out or in
    assert clear.X[settled].sum() == 0
    alarmed = make_home(noise=0.0, false_alarms=2.0)
    hours = settled.sum() * 10 / 3600
    rate = alarmed.X[settled].sum() / hours / 40
    assert rate == pytest.approx(2.0, rel=0.2)


def test_sensors_see_their_own_room_only():
    centres = SENSORS[:, :2]
    seen = sensitivity(centres)
    assert seen.min() == 0.0
    np.testing.assert_allclose(np.diag(seen), 1.0)
    rooms = room_of(centres)
    assert (seen[rooms[:, None] != rooms] == 0).all()
    behind = np.array([[SENSORS[36, 0], -0.5]])  # just outside the bathroom
    assert not sensitivity(behind).any()


def test_an_ellipse_is_turned_by_its_angle():
    centre, radii, degrees = np.split(SENSORS[2], [2, 4])
    turn = np.deg2rad(degrees[0])
    along = np.array([np.cos(turn), np.sin(turn)])
    across = np.array([-np.sin(turn), np.cos(turn)])
    for axis, radius in zip((along, across), radii, strict=True):
        inside, outside = centre + 0.99 * radius * axis, centre - 1.01 * radius * axis
        assert sensitivity(inside[None])[0, 2] == pytest.approx(1 - 0.99**2)
        assert sensitivity(outside[None])[0, 2] == 0.0


def test_ways_lead_through_doors():
    names = list(ROOMS)
    middles = {name: ((a + c) / 2, (b + d) / 2) for name, (a, b, c, d) in ROOMS.items()}
    for start in names:
        for goal in names:
            corners = np.array(route(middles[start], middles[goal]))
            assert tuple(corners[0]) == middles[start]
            assert tuple(corners[-1]) == middles[goal]
            steps = np.linspace(corners[:-1], corners[1:], 50).reshape(-1, 2)
            visited = {names[room] for room in room_of(steps)}
            assert visited <= {start, goal, "hallway"}


def test_nobody_jumps():
    rng = np.random.default_rng(0)
    episodes = plan(20_000.0, rng)
    moves = list(motions(episodes, 1.0, rng))
    ticks = np.concatenate([move.tick for move in moves])
    spots = np.concatenate([move.spot for move in moves])
    assert (np.diff(ticks) > 0).all()
    walks = [move.spot for move in moves if len(move.spot) > 1 and (move.strength == 1).all()]
    longest = max(np.hypot(*np.diff(walk, axis=0).T).max() for walk in walks)
    assert longest <= SPEED + 1e-9
    assert (room_of(spots) >= 0).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_activities_can_be_recognised_but_not_from_one_moment(home):
    X = home.X.astype(float)
    # Readings that fade away over seconds, minutes and a quarter of an hour.
    faded = [lfilter([np.sqrt(1 - keep)], [1, -keep], X, axis=0) for keep in (0.7, 0.95, 0.99)]
    half = len(X) // 2
    # Neighbouring rows say much the same: every tenth is enough to learn from.
    now, with_history = (
        LogisticRegression(max_iter=60)
        .fit(features[:half:10], home.y[:half:10])
        .score(features[half:], home.y[half:])
        for features in (X, np.hstack([X, *faded]))
    )
    assert now < 0.7
    assert 0.75 < with_history < 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_steps": 0}, "n_steps must be at least 1, got 0"),
        ({"interval": 0.0}, r"interval must lie in \[0.1, 3600\)"),
        ({"noise": 1.0}, r"noise must lie in \[0, 1\)"),
        ({"false_alarms": -1.0}, "false_alarms must lie in"),
        ({"dead_time": -1.0}, "dead_time must lie in"),
        ({"random_state": -1}, "random_state must be at least 0"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_home(**{"n_steps": 10} | arguments)


@pytest.mark.parametrize("random_state", ["0", 1.5, np.random.RandomState(0)])
def test_bad_seeds_are_named(random_state):
    with pytest.raises(TypeError, match="random_state must be"):
        make_home(10, random_state=random_state)
