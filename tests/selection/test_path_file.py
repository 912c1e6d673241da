"""The file of a path: what is saved comes back, and nothing else comes in."""

import copy
import json
import math
import pickle
from dataclasses import fields, replace
from functools import cache
from pathlib import Path as FilePath

import numpy as np
import pandas as pd
import pytest

from forback import Path, Refinement, select
from forback.core.point import Point, Step
from forback.core.status import Status
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
)
from forback.selection import path_file
from forback.selection.descent import Descent
from support.problems import make_problem

DOCUMENT = FilePath(__file__).resolve().parents[2] / "docs" / "path-file.md"


def a_path(**options):
    problem = make_problem("squared", "correlated", 3, n=40, p=8)
    X = pd.DataFrame(problem.X, columns=[*"stuvwxyz"])
    return select(LeastSquares(X, problem.y, fit_intercept=True), **{"k": 6, **options})


@pytest.fixture(scope="module")
def path():
    return a_path(groups=[*"aabbccdd"], by="feature", costs={"a": 1, "b": 2, "c": 0.1, "d": 4})


@cache
def refined_paths():
    """Paths with descents: of single candidates, of groups, with an estimate, and compounds."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 12)) @ (np.eye(12) + 0.6 * rng.normal(size=(12, 12)))
    y = X @ rng.normal(size=12) + rng.normal(size=60)
    options = {"k": 4, "refine": "swap"}
    plain = select(LeastSquares(pd.DataFrame(X).add_prefix("x"), y, fit_intercept=True), **options)
    groups = {"groups": [j // 2 for j in range(12)], "always": [11]}
    paths = [
        plain,
        select(LeastSquares(X, y, fit_intercept=True), 3, refine="swap", **groups),
        select(Logistic(X, y > 0, ridge=0.01), **options),
        one_for_two(plain),
        select(LeastSquares(X, y), start=[0, 1, 2], **options),
    ]
    assert all(any(descent.steps for descent in path.descents) for path in paths)
    return paths


def one_for_two(path):
    """The path with descents in which a block gives way to two, at once and one by one."""
    origin, entered = path.descents[0].origin, path.descents[0].entered
    first = int(origin.support[0])
    one, two = [j for j in range(12) if j not in origin.support][:2]
    ways = [
        [("remove", first, None, ()), ("add", one, None, ()), ("add", two, None, ())],
        [("exchange", two, first, (one,))],
    ]
    descents = []
    for way in ways:
        before, steps = origin, []
        for action, feature, out, others in way:
            moved = {feature, out, *others} - {None}
            support = np.array(sorted(set(before.support.tolist()) ^ moved))
            size, value = len(support) - 1, before.value - 0.125
            point = Point(support, np.ones(len(support)), value, size)
            change = before.value - value
            steps.append(
                Step(action, feature, size, value, change, 0.0, point, "", 0, size, float(size),
                     f"x{feature}", (feature,), out, "" if out is None else f"x{out}", "by hand",
                     others)
            )  # fmt: skip
            before = point
        descents.append(Descent("by hand", origin, entered, steps, "for a test"))
    return replace(path, descents=[*path.descents, *descents])


def test_what_is_saved_comes_back(path, tmp_path):
    others = [
        a_path(),
        a_path(groups=[*"aabbccdd"], k=2, always=[0]),
        a_path(k=0),
        select(Multinomial(np.eye(6), [*"abcabc"], ridge=0.1), 2),
        select(Multinomial(np.eye(6), [*"abcabc"], ridge=0.1), 2, by="feature", always=[1]),
        select(Multinomial(np.eye(6), [*"abcabc"], ridge=0.1), 2, groups=[*"xyxyxy"], always=[1]),
        *(select(ChainCRF(np.eye(6), [*"ababba"]), 2, by=by) for by in ("group", "feature")),
        select(GaussianCovariance(np.eye(3) + 0.2), 2),
        a_path(by="group"),
        select(GLM("poisson", np.eye(6), np.arange(6.0), ridge=0.1), 2),
        Path(path.start, path.dim, path.group_costs),
        *refined_paths(),
    ]
    for one in (path, *others):
        one.save(tmp_path / "path.json")
        loaded = Path.load(tmp_path / "path.json")
        assert path_file.dumps(loaded) == path_file.dumps(one)
        assert (loaded.stop_reason, loaded.names) == (one.stop_reason, one.names)
        pd.testing.assert_frame_equal(loaded.to_frame(), one.to_frame())
        assert repr(loaded) == repr(one)


def test_points_are_read_only_fresh_and_loaded(path, tmp_path):
    path.save(tmp_path / "path.json")
    for one in (path, Path.load(tmp_path / "path.json")):
        for point in one.points:
            for array in (point.support, point.coef):
                with pytest.raises(ValueError, match="read-only"):
                    array[:] = 0


def test_arrays_of_an_objective_are_not_touched():
    """Somebody's objective may hand out the very array it keeps."""

    class Keeper:
        dim = n_candidates = 2

        def __init__(self):
            self.coef = np.zeros(0)

        def minimise(self, support, start=None):
            from forback.core.point import Point

            self.coef = np.ones(len(support))
            return Point(support, self.coef, 2.0 - len(support))

        def value_and_gradient(self, beta):
            return 2.0 - np.count_nonzero(beta), np.ones(2)

        decrease_if_added = increase_if_removed = lambda self, point, blocks: np.ones(len(blocks))

    objective = Keeper()
    path = select(objective, 2)
    objective.coef[:] = 5.0
    assert path.end.coef.tolist() == [1.0, 1.0]


def test_a_save_that_fails_leaves_the_file(path, tmp_path):
    file = tmp_path / "path.json"
    path.save(file)
    before = file.read_bytes()
    broken = Path(path.start, path.dim, path.group_costs, {"method": object()})
    with pytest.raises(ValueError, match=r"settings\.method must be one of"):
        broken.save(file)
    assert file.read_bytes() == before


HUGE = 10**30


def mutations(content):
    """(name, change): ways to spoil the content of a file."""
    step = len(content["steps"]) - 1
    used = content["ledger"]["owner"][content["steps"][0]["feature"]]
    spots = [
        ("dim",), ("settings",), ("settings", "method"), ("settings", "k"), ("settings", "by"),
        ("settings", "threshold"), ("settings", "ratio"), ("settings", "backward"),
        ("settings", "budget"), ("settings", "max_steps"), ("names",), ("names", 0), ("ledger",),
        ("ledger", "owner"), ("ledger", "owner", 1), ("ledger", "prices"),
        ("ledger", "prices", used), ("ledger", "names"), ("ledger", "names", 0), ("stop_reason",),
        ("start",), ("start", "support"), ("start", "support", 0), ("start", "coef"),
        ("start", "coef", 0), ("start", "value"), ("start", "size"), ("start", "note"),
        ("steps",), ("steps", step), ("steps", step, "action"), ("steps", step, "feature"),
        ("steps", step, "size"), ("steps", step, "value"), ("steps", step, "change"),
        ("steps", step, "score"), ("steps", step, "note"), ("steps", step, "solved"),
        ("steps", step, "groups"), ("steps", step, "cost"), ("steps", step, "point"),
        ("steps", step, "point", "support"), ("steps", step, "point", "support", 1),
        ("steps", step, "point", "coef"), ("steps", step, "point", "coef", 1),
        ("steps", step, "point", "value"), ("steps", step, "point", "size"),
        ("steps", step, "point", "note"), ("format",),
    ]  # fmt: skip
    values = [None, True, -5, 0.5, HUGE, "x", [], {}, [[1]], float("nan"), float("inf")]
    for spot in spots:
        for value in values:
            yield f"{spot} = {value!r}", spot, value
        yield f"no {spot}", spot, Ellipsis


def changed(content, spot, value):
    other = copy.deepcopy(content)
    inside = other
    for key in spot[:-1]:
        inside = inside[key]
    if value is Ellipsis:
        del inside[spot[-1]]
    else:
        inside[spot[-1]] = value
    return other


def still_possible(spot, value):
    """Whether a run, of some other data, could have written this."""
    field = spot[-1] if isinstance(spot[-1], str) else spot[-2]
    if value is Ellipsis:  # the last step, or something a path put together by hand may lack
        free = spot[0] == "settings" and len(spot) == 2 and spot[1] != "by"
        return free or spot == ("steps", 5)
    if value is None:
        return field in ("k", "budget", "max_steps", "names") and spot[-1] != 0
    if value == "x" and isinstance(value, str):
        return field in ("note", "stop_reason") or spot[-2:] == ("names", 0)
    number = not isinstance(value, bool | str | list | dict)
    if field in ("score", "coef") and number and spot[-1] != "coef":
        return math.isfinite(value)
    if field in ("threshold", "budget"):
        return value in (0.5, HUGE)
    return (spot, value) in (
        (("settings", "ratio"), 0.5), (("steps",), []),
    )  # fmt: skip


def test_every_change_is_refused_by_the_name_of_its_field(path, tmp_path):
    content = json.loads(path_file.dumps(path))
    file, tried, loaded = tmp_path / "path.json", 0, set()
    for name, spot, value in mutations(content):
        file.write_text(json.dumps(changed(content, spot, value)))
        tried += 1
        try:
            Path.load(file)
            loaded.add(name)
        except ValueError as error:
            message = str(error)
            if not ("is not a path saved by forback: " in message and " must be " in message):
                pytest.fail(f"{name}: {message}")
    assert tried == 49 * 12
    expected = {name for name, spot, value in mutations(content) if still_possible(spot, value)}
    assert loaded == expected
    assert len(loaded) < 40


def test_supports_must_follow_from_the_steps(path):
    content = json.loads(path_file.dumps(path))
    last = content["steps"][-1]["point"]["support"]
    for support in (last[::-1], last[:1] * len(last), [99, *last[1:]], [*last[:-1], 10**18]):
        with pytest.raises(ValueError, match=r"steps\[\d\]\.point\.support"):
            path_file.loads(
                json.dumps(changed(content, ("steps", -1, "point", "support"), support))
            )
    swapped = copy.deepcopy(content)
    swapped["steps"][0], swapped["steps"][1] = swapped["steps"][1], swapped["steps"][0]
    with pytest.raises(ValueError, match=r"steps\[0\]\.size must be"):
        path_file.loads(json.dumps(swapped))


# Descents ----------------------------------------------------------------------------------------


def exchange_in(content):
    """The place of a descent with an exchange."""
    actions = [[step["action"] for step in descent["steps"]] for descent in content["descents"]]
    return next(place for place, own in enumerate(actions) if own[:1] == ["exchange"])


DESCENT_FIELDS = [
    *[("start",), ("origin",), ("entered",), ("steps",), ("ending",)],
    *[("origin", name) for name in ("support", "coef", "value", "size", "note", "status")],
    *[("steps", 0, name) for name in path_file._EXCHANGE_FIELDS],
    *[("steps", 0, "point", name) for name in ("support", "coef", "value", "size", "status")],
]  # fmt: skip


@pytest.mark.parametrize("number", range(5))
def test_every_change_of_a_descent_is_refused_by_the_name_of_its_field(number):
    content = json.loads(path_file.dumps(refined_paths()[number]))
    place, loaded = exchange_in(content), set()
    for spot in DESCENT_FIELDS:
        for value in (Ellipsis, None, True, -5, 0.5, HUGE, "x", {}, [[1]], [10**6], float("nan")):
            try:
                path_file.loads(json.dumps(changed(content, ("descents", place, *spot), value)))
                loaded.add((spot[-1], repr(value)))
            except ValueError as error:
                if f"descents[{place}]." not in str(error) and "every number" not in str(error):
                    pytest.fail(f"{spot} = {value!r}: {error}")
    text = {(name, "'x'") for name in ("start", "ending", "note")}
    scores = {("score", repr(value)) for value in (-5, 0.5, HUGE)}
    assert loaded == {*text, *scores, ("columns", "[1000000]")}


def test_what_a_descent_says_must_follow_from_its_points():
    content = json.loads(path_file.dumps(refined_paths()[0]))
    place = exchange_in(content)
    descent = content["descents"][place]
    step = descent["steps"][0]
    support, inside = descent["origin"]["support"], step["point"]["support"]
    others = [j for j in range(12) if j not in {*support, *inside}]
    stays = next(j for j in support if j in inside)
    entered = descent["entered"]
    for spot, value, message in [
        (("steps", 0, "out"), stays, rf"\.out must be what moved, \[{step['out']}\]"),
        (("steps", 0, "out"), others[0], rf"\.out must be what moved, \[{step['out']}\]"),
        (("steps", 0, "out"), None, rf"\.out must be what moved, \[{step['out']}\], got None"),
        (("steps", 0, "out"), 12, r"\.out must be a block, of which there are 12"),
        (("steps", 0, "feature"), stays, rf"\.feature must be what moved, \[{step['feature']}\]"),
        (("steps", 0, "feature"), step["out"], r"\.feature must be what moved"),
        (("steps", 0, "action"), "add", r"steps\[0\]\.size must be"),
        (("steps", 0, "size"), step["size"] + 1, r"\.size must be that of its point, 4"),
        (("steps", 0, "others"), [stays], r"\.others must be what else moved, \[\], got"),
        (("steps", 0, "change"), step["change"] + 1e-3, r"\.change must be the fall of the value"),
        (("steps", 0, "value"), step["value"] + 1e-3, r"\.value must be that of its point"),
        (("steps", 0, "groups"), 3, r"\.groups must be the 4 groups in use"),
        (("steps", 0, "cost"), 3.0, r"\.cost must be what these groups cost"),
        (("steps", 0, "point", "support"), support, r"support must be that before"),
        (("entered",), entered[::-1], r"entered must be what is always in, and then the rest"),
        (("entered",), entered[:-1], r"entered must be the support of the origin in some order"),
        (("entered",), [*entered[:-1], entered[0]], r"entered must be the support of the origin"),
        (("origin", "size"), 3, r"origin\.size must be that of its 4 blocks"),
    ]:  # fmt: skip
        other = changed(content, ("descents", place, *spot), value)
        refused(other, rf"descents\[{place}\]\.(steps\[\d\]\.)?(point\.|origin\.)?.*{message}")
    moved = changed(content, ("descents", place, "steps", 0, "action"), "add")
    refused(changed(moved, ("descents", place, "steps", 0, "size"), 5), r"\.size must be")
    without = copy.deepcopy(content)
    for field in ("support", "coef"):
        del without["descents"][place]["origin"][field][-1]
    refused(without, r"origin\.support must be with \[12\], in from the start")


def test_where_several_blocks_come_for_one_all_are_named():
    content = json.loads(path_file.dumps(refined_paths()[3]))
    place = len(content["descents"]) - 1
    step = content["descents"][place]["steps"][0]
    spot = ("descents", place, "steps", 0)
    for name, value, message in [
        (
            "others",
            [],
            rf"others must be what else moved, {step['others']}, got".replace("[", r"\["),
        ),
        ("others", [step["out"]], "others must be what else moved"),
        ("others", step["others"] * 2, "others must be what else moved"),
        ("size", step["size"] - 1, r"size must be that of its point, 5"),
        ("action", "add", r"point\.support must be that before, with some coord"),
    ]:
        refused(changed(content, (*spot, name), value), rf"steps\[0\]\.({message})")
    named = changed(content, (*spot, "feature"), step["others"][0])
    named = changed(named, (*spot, "others"), [step["feature"]])
    assert path_file.loads(json.dumps(named))["descents"][place].end.size == 5
    alone = changed(content, ("descents", place - 1, "steps", 0, "out"), step["out"])
    refused(alone, r"steps\[0\]\.out must be null, since the step is to remove")


def test_groups_are_exchanged_as_a_whole_and_what_is_always_in_stays():
    content = json.loads(path_file.dumps(refined_paths()[1]))
    place = exchange_in(content)
    step = content["descents"][place]["steps"][0]
    half = copy.deepcopy(content)
    half["descents"][place]["steps"] = half["descents"][place]["steps"][:1]
    point = half["descents"][place]["steps"][0]["point"]
    came = {2 * step["feature"], 2 * step["feature"] + 1} - {11}
    if len(came) == 2:
        where = point["support"].index(max(came))
        del point["support"][where], point["coef"][where]
        refused(half, r"point\.support must be changed by all 2 coordinates")
    origin = copy.deepcopy(content)
    free = [j for j in origin["descents"][place]["origin"]["support"] if j < 10]
    where = origin["descents"][place]["origin"]["support"].index(free[0])
    for field in ("support", "coef"):
        del origin["descents"][place]["origin"][field][where]
    origin["descents"][place]["entered"].remove(free[0])
    refused(origin, r"origin\.support must be changed by all 2 coordinates of \d, got \[\d\]")


def test_settings_of_refinement_and_of_budgets_are_checked():
    content = json.loads(path_file.dumps(refined_paths()[0]))
    for spot, value, message in [
        (("refine", "starts"), ["path", "x"], r"refine\.starts\[1\] must be one of path"),
        (("refine", "shortlist"), 0, r"refine\.shortlist must be a whole number"),
        (("refine", "effort"), -1.0, r"refine\.effort must be a finite number"),
        (("refine", "seconds"), "1", r"refine\.seconds must be a finite number"),
        (("refine", "more"), 1, r"refine\.more must be absent"),
        (("refine", "effort"), Ellipsis, r"refine\.effort must be present"),
        (("unaffordable",), "pas", r"settings\.unaffordable must be one of stop, pass"),
    ]:
        refused(changed(content, ("settings", *spot), value), message)
    path_file.loads(json.dumps(changed(content, ("settings", "refine"), None)))
    none = {**content, "steps": [], "names": None}
    del none["settings"]["by"]
    refused(none, r"settings\.by must be present")


def test_what_a_run_was_given_to_begin_with_comes_first_and_all_of_it_is_named():
    content = json.loads(path_file.dumps(refined_paths()[4]))
    step = content["steps"][0]
    assert (step["action"], step["feature"], step["others"], step["size"]) == (
        "start",
        0,
        [1, 2],
        3,
    )
    for spot, value, message in [
        ((0, "others"), [1], r"steps\[0\]\.others must be what else moved, \[1, 2\], got \[1\]"),
        ((0, "others"), [1, 2, 3], r"steps\[0\]\.others must be what else moved"),
        ((0, "feature"), 5, r"steps\[0\]\.feature must be what moved, \[0, 1, 2\]"),
        ((0, "size"), 1, r"steps\[0\]\.size must be that of its point, 3"),
        ((0, "action"), "add", r"steps\[0\]\.others must be absent"),
        ((0, "others"), Ellipsis, r"steps\[0\]\.others must be present"),
        ((0, "action"), "exchange", r"steps\[0\]\.others must be absent"),
        ((1, "action"), "exchange", r"steps\[1\]\.action must be one of add, remove, got"),
        ((1, "action"), "start", r"steps\[1\]\.others must be present"),
        ((1, "others"), [0], r"steps\[1\]\.others must be absent"),
    ]:
        refused(changed(content, ("steps", *spot), value), message)
    twice = changed(content, ("steps", 1), step)
    refused(twice, r"steps\[1\]\.action must be add or remove after the first")
    assert repr(refined_paths()[4]).startswith("<Path of foba-gdt: 3 given, ")


# Versions, and what is no file -------------------------------------------------------------------


def refused(content, message):
    with pytest.raises(ValueError, match=message):
        path_file.loads(json.dumps(content))


@pytest.mark.parametrize("always", [[], [0]])
def test_a_group_moves_as_a_whole(always):
    content = json.loads(path_file.dumps(a_path(groups=[*"aaabbbcc"], k=1, always=always)))
    point = content["steps"][0]["point"]
    moved = set(point["support"]) - set(content["start"]["support"])
    assert len(moved) > 1
    place = point["support"].index(max(moved))
    del point["support"][place], point["coef"][place]
    refused(content, rf"steps\[0\]\.point\.support must be changed by all {len(moved)} coord")


@pytest.mark.parametrize("options", [{}, {"groups": [*"aaaabbbb"]}])
def test_what_is_always_in_stays_in(options):
    content = json.loads(path_file.dumps(a_path(k=1, always=[0], **options)))
    first = content["steps"][0]
    last = copy.deepcopy(first) | {"action": "remove", "feature": 0, "size": 0, "change": 0.0}
    del last["point"]["support"][0], last["point"]["coef"][0]
    last["point"]["size"] = 0
    last["groups"] = len({content["ledger"]["owner"][j] for j in last["point"]["support"] if j < 8})
    content["steps"].append(last)
    refused(
        content, r"steps\[1\]\.point\.support must be with what is in from the start, got \[0\]"
    )


def test_changes_of_huge_values_are_checked_too(path):
    content = json.loads(path_file.dumps(path))
    content["steps"] = content["steps"][:1]
    step = content["steps"][0]
    content["start"]["value"] = step["value"] = step["point"]["value"] = 1.7e308
    step["change"] = 0.0
    path_file.loads(json.dumps(content))
    refused(changed(content, ("steps", 0, "change"), 1e300), r"steps\[0\]\.change must be the fall")


def test_prices_too_large_to_be_added_are_refused(path):
    content = json.loads(path_file.dumps(path))
    content["ledger"]["prices"] = [1.7e308] * 4
    for step in content["steps"]:
        step["cost"] = 1.7e308
    refused(content, r"steps\[\d\]\.cost must be what these groups cost, inf")


def test_only_a_path_without_steps_and_names_need_not_say_what_blocks_are(path):
    content = json.loads(path_file.dumps(path))
    del content["settings"]["by"]
    refused(content, r"settings\.by must be present")
    content["steps"] = []
    refused(content, r"settings\.by must be present")
    content["names"] = None
    assert path_file.loads(json.dumps(content))["settings"].get("by") is None


@pytest.mark.parametrize("spot", [("format",), ("names",), ("steps", 0, "point", "coef", 0)])
def test_no_depth_of_nesting_is_too_much(spot, path, tmp_path):
    text = json.dumps(changed(json.loads(path_file.dumps(path)), spot, "here"))
    for depth in range(850, 1010):
        (tmp_path / "path.json").write_text(text.replace('"here"', "[" * depth + "]" * depth))
        with pytest.raises(ValueError, match="is not a path saved by forback: "):
            Path.load(tmp_path / "path.json")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"", b"[" * 10**5, b'{"format": 2, "format": 2}', b"1", b'"text"']
)
def test_what_is_no_file_of_ours_is_refused(content, tmp_path):
    file = tmp_path / "path.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is not a path saved by forback"):
        Path.load(file)
    with pytest.raises(FileNotFoundError):
        Path.load(tmp_path / "absent.json")


def test_versions(path):
    content = json.loads(path_file.dumps(path))
    for version in (0, 1, 5, 4.0, "4", None):
        with pytest.raises(ValueError, match="format must be a whole number from 2 to 4"):
            path_file.loads(json.dumps({**content, "format": version}))


def test_a_file_of_version_3_still_loads(path):
    content = json.loads(path_file.dumps(path))
    old = {**content, "format": 3}
    old["settings"] = {name: content["settings"][name] for name in path_file.SETTINGS}
    del old["descents"]
    loaded = json.loads(path_file.dumps(Path(**path_file.loads(json.dumps(old)))))
    assert loaded == {**content, "settings": old["settings"]}
    refused({**old, "descents": []}, "descents must be absent")
    refused(
        changed(old, ("steps", 0, "action"), "start"), r"action must be one of add, remove, got"
    )
    refused(changed(old, ("settings", "refine"), None), r"settings\.refine must be absent")


def test_a_pickle_of_before_there_was_refinement_has_no_descents():
    """What was pickled then lacks the list of descents, and four fields of every step."""
    path = a_path()
    step = path.steps[0]
    old = Step.__new__(Step)
    old.__setstate__(step.__getstate__()[:-4])
    assert (old, old.out, old.start) == (step, None, "")
    state = {name: value for name, value in vars(path).items() if name != "descents"}
    again = Path.__new__(Path)
    again.__setstate__(state)
    assert again.descents == []
    assert path_file.dumps(again) == path_file.dumps(path)
    for one in refined_paths():
        assert path_file.dumps(pickle.loads(pickle.dumps(one))) == path_file.dumps(one)


OLD = """
{"format": 2, "dim": 2, "settings": {"method": "foba-gdt", "k": 2, "threshold": 0.0, "ratio": 0.5,
 "backward": "coordinate", "by": "feature", "budget": null, "max_steps": null},
 "names": ["a", "b"], "ledger": {"owner": [0, 1], "prices": [1.0, 1.0], "names": null},
 "stop_reason": "%s",
 "start": {"support": [], "coef": [], "value": 3.0, "size": 0, "note": ""},
 "steps": [{"action": "add", "feature": 1, "size": 1, "value": 0.25, "change": 2.75, "score": 3.0,
  "note": "", "solved": 2, "groups": 1, "cost": 1.0,
  "point": {"support": [1], "coef": [1.8], "value": 0.25, "size": 1, "note": "%s"}}]}
"""


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("size 2 reached", "SIZE"),
        ("nothing left can be had for the 0 left of the budget 2", "NOTHING_AFFORDABLE"),
        ("no candidate left lowers the objective by more than rounding", "EXHAUSTED"),
        ("every candidate is in", "ALL_IN"),
        ("something else", "RUNNING"),
    ],
)
def test_a_file_of_version_2_still_loads_and_its_sentences_become_codes(sentence, code):
    note = "no minimiser: S is singular on variables joined by these edges; Q falls without end"
    path = Path(**path_file.loads(OLD % (sentence, note)))
    assert (path.stop.name, path.stop_reason) == (code, sentence)
    assert path.end.status is Status.UNBOUNDED
    assert path.start.status is Status.CONVERGED
    assert path.steps[0].name == "b"
    again = Path(**path_file.loads(path_file.dumps(path)))
    assert (again.stop, again.end.status) == (path.stop, path.end.status)


def test_a_note_of_somebodys_own_in_a_file_of_version_2_is_no_convergence():
    path = Path(**path_file.loads(OLD % ("size 2 reached", "I gave up")))
    assert (path.end.status, path.end.note) == (Status.OTHER, "I gave up")


def test_the_document_says_what_the_schema_asks():
    text = DOCUMENT.read_text(encoding="utf-8")
    example = text.split("```json\n")[1].split("```")[0]
    parts = path_file.loads(example)
    assert [step.feature for step in parts["steps"]] == [1, 0]
    row = path_file._row(parts["steps"][0], path_file._STEP_FIELDS)
    settings = {**path_file.SETTINGS, **path_file.LATER_SETTINGS, **Refinement().to_dict()}
    descent = {one.name for one in fields(Descent)} | {"out"}
    for field in {*json.loads(example), *row, *row["point"], *settings, *descent}:
        assert f"`{field}`" in text, field


def test_a_real_run_is_the_example(tmp_path):
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    example = DOCUMENT.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    path = select(LeastSquares(X, [4.0, 1.0, 1.0]), 2)
    ours, theirs = json.loads(path_file.dumps(path)), json.loads(example)
    assert ours.keys() == theirs.keys()
    assert [s["feature"] for s in ours["steps"]] == [s["feature"] for s in theirs["steps"]]
    assert ours["steps"][-1]["value"] == pytest.approx(theirs["steps"][-1]["value"])
