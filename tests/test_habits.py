"""The repository's habits agree with each other: hooks, CI, the Makefile, versions."""

import re
import tomllib
from pathlib import Path

import forback
from support.tiers import SLOW

ROOT = Path(__file__).resolve().parents[1]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


PROJECT = tomllib.loads(text("pyproject.toml"))["project"]


def test_hooks_run_what_make_lint_runs():
    rule = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.MULTILINE)[1]
    hooks = re.findall(r"entry: \.venv/bin/(.*)", text(".pre-commit-config.yaml"))
    assert hooks == re.findall(r"\$\(BIN\)/(.*)", rule)
    assert "run: make lint" in text(".github/workflows/test.yml")


def test_ci_runs_every_python_that_is_promised():
    promised = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: 3." in name]
    matrix = re.search(r"python: \[(.*)\]", text(".github/workflows/test.yml"))[1]
    assert re.findall(r'"(.*?)"', matrix) == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_oldest_versions_are_the_lower_bounds():
    pinned = dict(re.findall(r"^([\w-]+)==(.*)$", text("tests/oldest-versions.txt"), re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["cli"], *extras["report"], *extras["jax"]]
    for requirement in needed:
        name, bound = requirement.split(">=")
        assert f"{pinned[name]}.".startswith(f"{bound}."), requirement


def test_the_citation_is_of_this_version():
    assert f"\nversion: {forback.__version__}\n" in text("CITATION.cff")


def test_tests_that_are_called_slow_exist():
    """A test that was renamed would join the fast ones unnoticed."""
    for place in SLOW:
        file, _, name = place.partition("::")
        if file.endswith(".py"):
            assert f"\ndef {name}" in text(f"tests/{file}"), place


def test_the_first_tier_leaves_out_what_is_slow():
    assert re.search(r'^test-fast:.*\n\t.* -m "not slow"$', text("Makefile"), re.MULTILINE)
