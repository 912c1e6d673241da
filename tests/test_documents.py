"""Every Python block of the documents runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = [
    pytest.param(block, id=f"{file.name}-{number}")
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL)
    )
]


#: A comment that begins with a list, a number or a truth claims what the line prints.
CLAIM = re.compile(r"^print\(.*\)\s+# (\[.*?\]|[0-9.]+|True|False)(?:[,:]|$)", re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs_and_prints_what_it_claims(block, capsys):
    exec(compile(block, "block", "exec"), {})
    printed = iter(capsys.readouterr().out.splitlines())
    for claim in CLAIM.findall(block):
        assert claim in printed  # after those before it: an iterator does not go back


def test_the_readme_has_its_examples():
    assert len(BLOCKS) >= 4


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
