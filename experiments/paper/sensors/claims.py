"""What the paper says about its sensors, and whether it is so in other homes."""

from __future__ import annotations

import pandas as pd

from experiments.paper.sensors.homes import SIMULATED
from experiments.report.page import Claim
from experiments.study import TITLES, verdict
from forback.datasets import make_home

METHODS = {
    "foba-gdt": f"{TITLES['foba-gdt']}-CRF",
    "forward-gdt": f"{TITLES['forward-gdt']}-CRF",
    "l1": "L1-CRF",
}

#: All that curves are drawn of: what the paper compares, and the refined answers.
CURVES = {**METHODS, "refined": f"{TITLES['foba-gdt']}-CRF, refined"}

#: Errors are alike, or as good as the best, if they differ by no more than one percentage point.
POINT = 0.01

#: An activity is well recognised up to this error.
WELL = 0.1

#: An activity whose error falls by as much improves much.
MUCH = 0.1

#: The paper's numbers of the activities that are frequent.
FREQUENT = (1, 2, 3, 4)

#: The paper's numbers of the activities that improve from 10 to 15 sensors.
IMPROVED = (5, 7, 9)


def curve(rows: pd.DataFrame, home: str, method: str) -> pd.DataFrame:
    """Return a method's rows in a home, sorted by sensors and, of an L1-CRF, by penalty.

    Refined, the lowest objective of all fits counts, with at most so many sensors.
    """
    if method == "refined":
        own = rows[(rows["home"] == home) & (rows["what"] == "refined")]
        own = own.sort_values(["sensors", "objective"]).drop_duplicates("sensors")
        lowest = [own["objective"].iloc[:count].argmin() for count in range(1, len(own) + 1)]
        return own.iloc[lowest].assign(sensors=own["sensors"].to_numpy())
    chosen = (rows["home"] == home) & (rows["what"] == "curve") & (rows["method"] == method)
    return rows[chosen].sort_values(["sensors", "penalty"], ascending=[True, False])


def whole(rows: pd.DataFrame, home: str) -> pd.DataFrame:
    """Return the row of the model with all sensors of a home, in the encoding used, if any."""
    return rows[(rows["home"] == home) & (rows["what"] == "all") & (rows["used"] == 1)]


def real_homes(rows: pd.DataFrame) -> list[str]:
    """List the homes whose logs were there."""
    return [home for home in rows["home"].unique() if home != SIMULATED]


def pairs(rows: pd.DataFrame, home: str) -> pd.DataFrame:
    """Put FoBa-gdt and Forward-gdt side by side for each number of sensors (but 0) of both."""
    ours, theirs = (curve(rows, home, method) for method in ("foba-gdt", "forward-gdt"))
    both = ours.merge(theirs, on="sensors", suffixes=("", "_forward"))
    return both[both["sensors"] > 0]


def needed(rows: pd.DataFrame, error: float) -> int | None:
    """Return the fewest sensors with that error or a lower one."""
    enough = rows.loc[rows["error"] <= error, "sensors"]
    return int(enough.min()) if len(enough) else None


def activities() -> list[str]:
    """List the activities in the paper's order: the first is its number 1."""
    return list(make_home(1).places)


def by_level(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Split the rows of single activities by the number of sensors asked for."""
    own = rows[rows["what"] == "activity"]
    return [level for _, level in own.groupby("level", sort=False)]


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Judge the claims for which there are rows."""
    both = pairs(rows, SIMULATED)
    told = [_improve(rows)]
    if len(both):
        told += [_comparable(rows), _faster(rows), _best(rows)]
    if len(whole(rows, SIMULATED)) and len(curve(rows, SIMULATED, "foba-gdt")):
        told.append(_enough(rows))
    if len(both):
        told.append(_fewer(rows))
    if by_level(rows):
        told += [_frequent(rows), _improved(rows)]
    return told


def _improve(rows: pd.DataFrame) -> Claim:
    """Judge whether each method's error is lower with the most sensors than with the fewest."""
    found = []
    lower = []
    for home in rows["home"].unique():
        for method, name in METHODS.items():
            own = curve(rows, home, method)
            if not len(own):
                continue
            first, last = own.iloc[0], own.iloc[-1]
            lower.append(last["error"] < first["error"])
            if home == SIMULATED:
                rises = (own["error"].diff() > 0).sum()
                found.append(
                    f"{name} from {first['error']:.1%} with {first['sensors']} to "
                    f"{last['error']:.1%} with {last['sensors']}, rising {rises} times on the way"
                )
    return Claim(
        "The performance for all methods gets improved when the number of sensors increases",
        f"{'; '.join(found)}. With all homes: lower at the end than at the beginning in "
        f"{sum(lower)} of {len(lower)} curves",
        all(lower),
    )


def _mean_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Average both methods' errors, for each home, over the numbers of sensors that both have."""
    homes = rows["home"].unique()
    means = {home: pairs(rows, home)[["error", "error_forward"]].mean() for home in homes}
    return pd.DataFrame(means).T.dropna()


def _comparable(rows: pd.DataFrame) -> Claim:
    means = _mean_errors(rows)
    apart = (means["error"] - means["error_forward"]).abs()
    return Claim(
        "FoBa-gdt-CRF and Forward-gdt-CRF achieve comparable performance",
        f"mean errors over the numbers of sensors differ by {apart[SIMULATED]:.2%} in the "
        f"simulated home, and at most by {apart.max():.2%} in any ({apart.idxmax()})",
        bool((apart <= POINT).all()) or (None if apart[SIMULATED] <= POINT else False),
    )


def _faster(rows: pd.DataFrame) -> Claim:
    means = _mean_errors(rows)
    ours, theirs = means.loc[SIMULATED]
    real = means.drop(SIMULATED)
    lower = (real["error"] < real["error_forward"]).sum()
    higher = (real["error"] > real["error_forward"]).sum()
    # The paper speaks of one home; ours is the simulated one, and the others may confirm it.
    holds = [ours < theirs, *([lower > higher] if len(real) else [])]
    return Claim(
        "FoBa-gdt-CRF reduces the error rate slightly faster, in terms of the number of sensors",
        f"mean error over 1 to {pairs(rows, SIMULATED)['sensors'].max()} sensors of the simulated "
        f"home {ours:.2%} against {theirs:.2%}; of {len(real)} real homes it is lower in {lower}, "
        f"higher in {higher}",
        verdict(*holds),
    )


def _best(rows: pd.DataFrame) -> Claim:
    curves = [curve(rows, SIMULATED, name) for name in ("foba-gdt", "forward-gdt")]
    best = curves[0]["error"].min()
    ours, theirs = (needed(own, best + POINT) for own in curves)
    more = f"more than {curves[1]['sensors'].iloc[-1]}"
    return Claim(
        "FoBa-gdt-CRF achieves its best performance with 14-15 sensors while Forward-gdt-CRF needs "
        "17-18 sensors to achieve the same error level",
        f"within a percentage point of FoBa-gdt's best error, {best:.1%}: FoBa-gdt with {ours} "
        f"sensors, Forward-gdt with {more if theirs is None else theirs}",
        verdict(ours in (14, 15), theirs is None or theirs > (ours or 0)),
    )


def _enough(rows: pd.DataFrame) -> Claim:
    everything = whole(rows, SIMULATED).iloc[0]
    own = curve(rows, SIMULATED, "foba-gdt")
    count = needed(own, everything["error"] + POINT)
    told = f"{count} are within a percentage point of that"
    if count is None:
        most = own["sensors"].iloc[-1]
        told = f"the lowest with up to {most} is {own['error'].min():.1%}"
    return Claim(
        "We obtain sufficient accuracy by using fewer than 40 sensors",
        f"error with all weights of all {everything['sensors']} sensors {everything['error']:.1%}; "
        f"{told}",
        count is not None,
    )


def _fewer(rows: pd.DataFrame) -> Claim:
    found = []
    holds = []
    for home in rows["home"].unique():
        both = pairs(rows, home)
        fewer = (both["weights"] < both["weights_forward"]).sum()
        more = (both["weights"] > both["weights_forward"]).sum()
        holds.append(fewer > 0 and more == 0)
        found.append(f"{home}: fewer at {fewer}, more at {more} of {len(both)} numbers of sensors")
    return Claim(
        "FoBa-gdt-CRF consistently requires fewer features than Forward-gdt-CRF to achieve the "
        "same error level when using the same number of sensors",
        "; ".join(found),
        verdict(*holds),
    )


def _errors(rows: pd.DataFrame) -> list[dict[str, float]]:
    """Return the error of each activity at each number of sensors."""
    return [level.set_index("label")["error"].to_dict() for level in by_level(rows)]


def _levels(rows: pd.DataFrame) -> str:
    return " and ".join(str(level["sensors"].iloc[0]) for level in by_level(rows))


def _frequent(rows: pd.DataFrame) -> Claim:
    names = [activities()[number - 1] for number in FREQUENT]
    found = []
    holds = []
    for errors in _errors(rows):
        some = {name: errors[name] for name in names if name in errors}
        holds.append(max(some.values()) <= WELL)
        found.append(", ".join(f"{name} {error:.1%}" for name, error in some.items()))
    return Claim(
        "The high frequency activities (e.g., activities {1, 2, 3, 4}) are well recognized in both "
        "cases",
        f"errors with {_levels(rows)} sensors: {'; '.join(found)}. Well is up to {WELL:.0%}",
        verdict(*holds),
    )


def _improved(rows: pd.DataFrame) -> Claim:
    first, *_, last = _errors(rows)
    much = [name for name in first if first[name] - last[name] >= MUCH]
    names = [activities()[number - 1] for number in IMPROVED]
    theirs = [
        f"{name} from {first[name]:.1%} to {last[name]:.1%}" for name in names if name in first
    ]
    return Claim(
        "The error rates for activities {5, 7, 9} significantly improve when the number of sensors "
        "increases from 10 to 15",
        f"with {_levels(rows)} sensors {', '.join(theirs)}; those that fall by {MUCH:.0%} or more: "
        + (", ".join(f"{name} ({first[name]:.1%} to {last[name]:.1%})" for name in much) or "none"),
        True if all(name in much for name in names) else None if much else False,
    )
