"""Which sensors tell what a person is doing at home.

The paper's application. Its data is not public, so a home of the same size is simulated, and five
public logs of real homes stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from experiments.paper.sensors import homes, refined
from experiments.paper.sensors.claims import (
    CURVES,
    POINT,
    activities,
    by_level,
    claims,
    curve,
    needed,
    pairs,
    real_homes,
    whole,
)
from experiments.paper.sensors.homes import SIMULATED, Spec
from experiments.report.figures import Bars, Figure, Line, Panel, Plan
from experiments.report.page import Section
from experiments.study import Experiment, Part
from forback.datasets import make_home
from forback.report.tables import Table

#: A log is read in the encoding that makes fewer errors on what is learnt from, with all sensors.
#: Of a home with few sensors all but one may be chosen: a run ends when it wants the last.
HOMES = (
    Spec(SIMULATED, 1.0, 22, steps=540_000, levels=(10, 15), iterations=300),
    Spec("casas-adlmr", 15.0, 22, "change"),
    Spec("casas-al-smarthome", 60.0, 11, iterations=300),  # 28 activities: slow
    Spec("ordonez-a", 60.0, 11),
    Spec("ordonez-b", 60.0, 11),
    Spec("van-kasteren-2008", 60.0, 13, "change"),
)
QUICK = (
    Spec(SIMULATED, 30.0, 4, steps=3_000, levels=(2, 4), iterations=50),
    Spec("ordonez-a", 120.0, 3, iterations=50),
)

#: Penalties of L1-CRFs, per step.
PENALTIES = (3e-3, 1e-3, 5e-4, 2.5e-4, 1e-4, 3e-5, 1e-5, 3e-6)
REAL_PENALTIES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
QUICK_PENALTIES = (1e-3, 1e-4)

#: Other ridges to try in the simulated home: the default, and a tenth of what is used.
DEFAULT_RIDGE = 1e-4
TENTH = 0.1

#: The sensors that the paper's table lists, at 10 and added up to 15. They hang in another home.
PAPER_SENSORS = ((1, 4, 5, 9, 10, 13, 19, 28, 34, 38), (2, 7, 36, 37, 40))


def parts(quick: bool) -> list[Part]:
    """List a part for each home and method, and for each penalty of L1-CRFs."""
    found: list[Part] = []
    for spec in QUICK if quick else HOMES:
        usual = PENALTIES if spec.name == SIMULATED else REAL_PENALTIES
        penalties = QUICK_PENALTIES if quick else usual
        found.append(Part(f"{spec.name}, all sensors", partial(homes.all_sensors, spec)))
        found += [
            Part(f"{spec.name}, {method}", partial(homes.greedy, spec, method))
            for method in ("foba-gdt", "forward-gdt")
        ]
        found += [
            Part(f"{spec.name}, refined, {count} sensors", partial(homes.refined, spec, count))
            for count in range(1, spec.budget + 1)
        ]
        found += [
            Part(f"{spec.name}, l1 {penalty:g}", partial(homes.l1, spec, penalty))
            for penalty in penalties
        ]
    if not quick:
        ridges = {"default": DEFAULT_RIDGE, "a tenth": TENTH / (HOMES[0].steps // 2)}
        found += [
            Part(f"{SIMULATED}, ridge: {label}", partial(homes.greedy, HOMES[0], "foba-gdt", ridge))
            for label, ridge in ridges.items()
        ]
    return found


# What to tell --------------------------------------------------------------------------------

#: Columns that some rows have: what is told may ask for them though no row is of that kind.
OPTIONAL = ["used", "method", "penalty", "iterations", "limit", "ridge", "weights", "level"]
OPTIONAL += ["chosen", "objective", "label", "steps", "taken_for"]


def section(rows: pd.DataFrame) -> Section:
    """Show errors and weights against sensors, activities, the plan, and the real homes."""
    rows = rows.reindex(columns=rows.columns.union(OPTIONAL, sort=False)).fillna({"chosen": ""})
    figures, tables = [], []
    if len(curve(rows, SIMULATED, "foba-gdt")):
        figures.append(_errors_and_weights(rows))
        tables.append(_path_table(rows))
    if by_level(rows):
        figures += [_activity_bars(rows), _plan(rows)]
        tables += [_activity_table(rows), _chosen_table(rows)]
    if (rows["what"] == "ridge").any():
        tables.append(_ridge_table(rows))
    if any(len(curve(rows, home, "foba-gdt")) for home in real_homes(rows)):
        figures.append(_real_figure(rows))
    if refined.homes(rows):
        figures.append(refined.figure(rows))
        tables.append(refined.table(rows))
    if (rows["what"] == "all").any():
        tables.append(_summary(rows))
    return Section(_intro(rows), _comparison(rows), claims(rows), figures, tables)


def _intro(rows: pd.DataFrame) -> str:
    told = [
        "The paper's 40 pyroelectric sensors in one home are not public. Here is a home of our "
        "own, simulated (make_home): 40 motion sensors, the paper's 14 activities."
    ]
    for row in whole(rows, SIMULATED).itertuples():
        told.append(
            f"It has {row.known:,.0f} steps of {row.interval:g} s to learn from and "
            f"{row.new:,.0f} that follow to test on."
        )
    real = real_homes(rows)
    if real:
        told.append(
            f"And public logs of real homes ({', '.join(real)}): every other sequence (a day, or a "
            "pair of people) to learn from, in the encoding with fewer errors on these; 'last' is "
            "not among them, since its columns could not be had from the chosen sensors alone. "
            "Steps to test on with an activity never learnt are left out."
        )
    told.append(
        "Weights (sensor x activity) enter one by one; for each number of sensors the model with "
        "the lowest objective counts. Refined is what FobaCRF does unless told otherwise, beyond "
        "the paper: fits to every number of sensors. The paper does not state its ridge: here it "
        "is 1 / steps, a standard normal prior. The L1-CRFs are crfsuite's, whose penalty is on "
        "transitions and biases too; as in the paper, a few values of it are tried"
        + _iterations(rows)
    )
    return " ".join(told)


def _iterations(rows: pd.DataFrame) -> str:
    fits = rows[rows["iterations"].notna()]
    cut = fits[fits["iterations"] >= fits["limit"]]
    if not len(cut):
        return "."
    limits = " or ".join(f"{limit:.0f}" for limit in sorted(cut["limit"].unique()))
    return (
        f"; {len(cut)} of {len(fits)} fits ended after {limits} iterations, before crfsuite's own "
        "rule was met."
    )


def _comparison(rows: pd.DataFrame) -> str:
    """Compare FoBa with Forward and L1 in the simulated home, and with L1 in the others."""
    told = []
    both = pairs(rows, SIMULATED)
    if len(both):
        same = (both["chosen"] == both["chosen_forward"]) & (
            both["weights"] == both["weights_forward"]
        )
        told.append(
            f"Simulated home: FoBa-gdt and Forward-gdt choose the same for {same.sum()} of "
            f"{len(both)} numbers of sensors."
        )
    lasso, ours = (curve(rows, SIMULATED, method) for method in ("l1", "foba-gdt"))
    meet = lasso.merge(ours, on="sensors", suffixes=("", "_foba"))
    if len(meet):
        last = meet.iloc[-1]
        told.append(
            f"With {last['sensors']} sensors an L1-CRF has an error of {last['error']:.1%}, "
            f"FoBa-gdt one of {last['error_foba']:.1%}."
        )
    told += [_against_l1(rows)] if real_homes(rows) else []
    told += [refined.sentence(rows)] if refined.homes(rows) else []
    return " ".join(told) or "Nothing to compare."


def _against_l1(rows: pd.DataFrame) -> str:
    """Count the real homes where FoBa-gdt comes near the full error with fewer sensors than L1."""
    counts = []
    for home in real_homes(rows):
        curves = [curve(rows, home, method) for method in ("foba-gdt", "l1")]
        if len(whole(rows, home)) and all(map(len, curves)):
            near = [needed(own, whole(rows, home)["error"].iloc[0] + POINT) for own in curves]
            counts.append([float("inf") if count is None else count for count in near])
    fewer = sum(ours < theirs for ours, theirs in counts)
    more = sum(ours > theirs for ours, theirs in counts)
    return (
        f"To come within a percentage point of the error with all sensors, FoBa-gdt needs fewer "
        f"sensors than the L1-CRFs in {fewer} of {len(counts)} real homes, more in {more}."
    )


# Figures ---------------------------------------------------------------------------------------


def _lines(rows: pd.DataFrame, home: str, column: str, most: float = float("inf")) -> list[Line]:
    lines = []
    # Where the first two are the same, the round marks of FoBa lie on the square ones.
    for method in ("forward-gdt", "foba-gdt", "refined", "l1"):
        own = curve(rows, home, method)
        own = own[own["sensors"] <= most]
        if len(own):
            line = Line(CURVES[method], list(own["sensors"]), list(own[column]), like=method)
            lines.append(line)
    return lines


def _errors_and_weights(rows: pd.DataFrame) -> Figure:
    most = curve(rows, SIMULATED, "foba-gdt")["sensors"].max()
    errors = _lines(rows, SIMULATED, "error")
    weights = _lines(rows, SIMULATED, "weights", most)
    panels = [
        Panel("test error", "sensors", "share of steps", errors, from_zero=True),
        Panel("features", "sensors", "weights that are not zero", weights, from_zero=True),
    ]
    caption = f"The simulated home: test error, and weights in use up to {most} sensors"
    return Figure("sensors", caption, panels)


def _real_figure(rows: pd.DataFrame) -> Figure:
    panels = [
        Panel(home, "sensors", "test error", _lines(rows, home, "error"), from_zero=True)
        for home in real_homes(rows)
    ]
    return Figure("sensors-real-homes", "Real homes: test error against sensors", panels)


def _level_title(level: pd.DataFrame) -> str:
    """Name a number of sensors; a step may pass over the number asked for."""
    asked = int(level["level"].iloc[0])
    used = int(level["sensors"].iloc[0])
    return f"{asked} sensors" if asked == used else f"{asked} sensors ({used} used)"


def _activity_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Tabulate errors: a line for each activity, in the paper's order, a column for each level."""
    levels = by_level(rows)
    errors = {_level_title(level): level.set_index("label")["error"] for level in levels}
    return pd.DataFrame(errors).reindex(activities()).dropna(how="all")


def _activity_bars(rows: pd.DataFrame) -> Figure:
    errors = _activity_errors(rows)
    heights = {level: list(errors[level]) for level in errors}
    bars = Bars("simulated home, FoBa-gdt-CRF", "test error", list(errors.index), heights)
    return Figure("sensors-activities", "Test error of single activities", [bars])


def _chosen(rows: pd.DataFrame) -> list[list[str]]:
    """List the sensors in use at each level."""
    own = curve(rows, SIMULATED, "foba-gdt").set_index("sensors")["chosen"]
    return [own[level["sensors"].iloc[0]].split(", ") for level in by_level(rows)]


def _plan(rows: pd.DataFrame) -> Figure:
    home = make_home(1)
    first, *_, last = _chosen(rows)
    later = [name for name in last if name not in first]
    plan = Plan(
        "sensors chosen by FoBa-gdt-CRF",
        home.rooms,
        home.sensor_names,
        [(x, y) for x, y in home.positions.tolist()],
        [(a, b, angle) for a, b, angle in home.ellipses.tolist()],
        [first, later],
        [f"{len(first)} sensors", f"added up to {len(last)}"],
    )
    return Figure("sensors-plan", "The simulated home and the sensors chosen", [plan])


# Tables ----------------------------------------------------------------------------------------


def _moves(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """List what was added and what was removed."""
    added = [f"+{name}" for name in after if name not in before]
    return added + [f"-{name}" for name in before if name not in after]


def _path_table(rows: pd.DataFrame) -> Table:
    """Tabulate the curves of the simulated home, and the sensors added or removed."""
    ours, theirs = (
        curve(rows, SIMULATED, name).set_index("sensors") for name in ("foba-gdt", "forward-gdt")
    )
    lines = []
    before: list[str] = []
    for count in sorted(ours.index.union(theirs.index)):
        cells = []
        for own in (ours, theirs):
            row = own.loc[count] if count in own.index else None
            cells += ["", ""] if row is None else [f"{row['error']:.2%}", f"{row['weights']:.0f}"]
        change = ""
        if count in ours.index:
            now = sorted(filter(None, ours.loc[count, "chosen"].split(", ")))
            change = " ".join(_moves(before, now))
            before = now
        lines.append([str(count), *cells, change])
    header = ["sensors", "error FoBa-gdt-CRF", "weights", "error Forward-gdt-CRF", "weights"]
    return Table("Simulated home", [*header, "FoBa-gdt-CRF: sensors added / removed"], lines)


def _activity_table(rows: pd.DataFrame) -> Table:
    errors = _activity_errors(rows)
    own = rows[rows["what"] == "activity"]
    first, last = (own.drop_duplicates("label", keep=which) for which in ("first", "last"))
    steps = first.set_index("label")["steps"]
    taken_for = last.set_index("label")["taken_for"].fillna("")
    numbers = {name: str(number) for number, name in enumerate(activities(), 1)}
    lines = [
        [numbers[name], name, f"{steps[name]:.0f}"]
        + [f"{error:.1%}" for error in row.dropna()]
        + [taken_for[name]]
        for name, row in errors.iterrows()
    ]
    header = ["number", "activity", "steps", *(f"error, {level}" for level in errors)]
    title = "Simulated home, FoBa-gdt-CRF: single activities"
    return Table(title, [*header, "most often taken for"], lines)


def _chosen_table(rows: pd.DataFrame) -> Table:
    first, *_, last = _chosen(rows)
    theirs = [", ".join(map(str, own)) for own in PAPER_SENSORS]
    lines = [
        [str(len(first)), ", ".join(sorted(first)), f"10: {theirs[0]}"],
        [f"up to {len(last)}", ", ".join(_moves(first, last)), f"up to 15: {theirs[1]}"],
    ]
    title = "Sensors chosen; the paper's hang in another home, so the numbers cannot be compared"
    return Table(title, ["sensors", "simulated home", "paper"], lines)


def _ridge_table(rows: pd.DataFrame) -> Table:
    """Tabulate what another ridge does to FoBa-gdt in the simulated home."""
    tried = pd.concat([curve(rows, SIMULATED, "foba-gdt"), rows[rows["what"] == "ridge"]])
    levels = [level["sensors"].iloc[0] for level in by_level(rows)]
    lines = []
    for ridge, own in tried.groupby("ridge"):
        errors = own.set_index("sensors")["error"]
        line = [
            f"{ridge:.2g}",
            *(f"{errors[count]:.1%}" if count in errors.index else "" for count in levels),
            f"{errors.min():.1%}",
            str(errors.idxmin()),
            str(needed(own, errors.min() + POINT)),
        ]
        lines.append(line)
    header = ["ridge", *(f"error, {count} sensors" for count in levels), "lowest error"]
    header += ["with sensors", "sensors within a point of it"]
    return Table("Simulated home, FoBa-gdt-CRF: other ridges", header, lines)


def _summary(rows: pd.DataFrame) -> Table:
    """Tabulate, for each home, how many sensors come within a point of the error with all."""
    lines = []
    for row in rows[rows["what"] == "all"].itertuples():
        counts = [row.known, row.new, row.left_out, row.labels, row.sensors]
        facts = [
            row.home,
            f"{row.interval:g} s",
            f"{row.encoding}, training error {row.train_error:.1%}",
            *(f"{count:.0f}" for count in counts),
            f"{row.error:.1%}",
        ]
        cells = [""] * (2 * len(CURVES))
        if row.used:
            curves = [curve(rows, row.home, method) for method in CURVES]
            cells = [_enough(own, row.error + POINT) for own in curves]
            cells += [f"{own['error'].min():.1%}" if len(own) else "" for own in curves]
        lines.append([*facts, *cells])
    header = ["home", "step", "encoding", "steps to learn from", "to test on", "left out"]
    header += ["activities", "sensors", "error with all (ridge)"]
    header += [f"sensors within a point, {name}" for name in CURVES.values()]
    header += [f"lowest error, {name}" for name in CURVES.values()]
    return Table("All homes; an encoding without figures is the one not used", header, lines)


def _enough(own: pd.DataFrame, error: float) -> str:
    """Tell how many sensors it takes, if the curve gets there."""
    if not len(own):
        return ""
    count = needed(own, error)
    return f"not with {own['sensors'].iloc[-1]}" if count is None else str(count)


EXPERIMENT = Experiment(
    "sensors",
    "Sensors of a home under a budget",
    parts,
    section,
    "python-crfsuite for L1-CRFs, public logs for real homes",
)
