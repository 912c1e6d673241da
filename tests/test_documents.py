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
