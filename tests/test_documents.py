"""Every Python block of the documents runs, prints what it claims, and is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

#: How many examples each page has, so that none is lost without somebody saying so here.
N_EXAMPLES = {
    "README.md": 12,
    "docs/add-an-objective.md": 1,
    "docs/coming-from-skscope.md": 1,
    "docs/covariance.md": 4,
    "docs/datasets.md": 2,
    "docs/refinement.md": 3,
    "docs/sensors.md": 3,
    "docs/theory.md": 5,
    "docs/your-own-loss.md": 4,
}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def fenced(page, language):
    text = page.read_text(encoding="utf-8")
    return [block for own, block in FENCED.findall(text) if own == language]


BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(fenced(page, "python"))
]

#: A comment that begins with a list, a number or a truth claims what the line prints.
CLAIM = re.compile(r"^print\(.*\)\s+# (\[.*?\]|[0-9.]+|True|False)(?:[,:]|$)", re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs_and_prints_what_it_claims(block, capsys):
    exec(compile(block, "block", "exec"), {})
    printed = iter(capsys.readouterr().out.splitlines())
    for claim in CLAIM.findall(block):
        assert claim in printed  # after those before it: an iterator does not go back


def test_every_page_has_its_examples():
    counts = {name_of(page): len(fenced(page, "python")) for page in PAGES}
    assert {name: count for name, count in counts.items() if count} == N_EXAMPLES


def test_no_example_goes_unrun():
    """Python that is not called so would not be run: what is fenced otherwise is no Python."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        others = [block for language, block in FENCED.findall(text) if language != "python"]
        assert text.count("```") == 2 * (len(others) + len(fenced(page, "python"))), page.name
        assert [block for block in others if re.search(r"^(from|import) ", block, re.M)] == []


# What you can rely on ----------------------------------------------------------------------------

NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def reliability():
    return (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_promise_names_a_test():
    rows = [line for line in reliability().splitlines() if line.startswith("| ")]
    promises = [row for row in rows if row != "| promise | test |"]
    assert len(promises) > 30
    assert [row for row in promises if not NAMED.search(row.rsplit(" | ", 1)[1])] == []


def test_the_tests_named_there_exist():
    for file, name in NAMED.findall(reliability()):
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"\ndef {name}(" in text, f"{file}::{name}"
