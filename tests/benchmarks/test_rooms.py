"""Who imports whom: the package neither of the two, benchmarks no experiments."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("room", "others"),
    [("src/forback", {"experiments", "benchmarks"}), ("benchmarks", {"experiments"})],
)
def test_imports_go_one_way(room, others):
    files = list((ROOT / room).rglob("*.py"))
    assert len(files) > 20
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & others, file


@pytest.mark.parametrize("room", ["experiments", "benchmarks"])
def test_files_and_functions_stay_short(room):
    for file in (ROOT / room).rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, file
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{file}: {node.name}"
