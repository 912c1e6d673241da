"""The command line."""

import errno
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import forback
from forback import cli
from forback.cli import main, make_app
from forback.report.tables import format_table


def run(*arguments):
    return CliRunner().invoke(make_app(), list(arguments))


def test_demo_reports_the_sensors():
    result = run("demo", "--sensors", "3", "--steps", "4000")
    assert result.exit_code == 0, result.output
    for word in (
        "40 motion sensors",
        "sensors added / removed",
        "The worst activities with 3 sensors",
    ):
        assert word in result.output
    errors = [line.split()[2] for line in result.output.splitlines() if line[:1].isdigit()]
    assert len(errors) == 4
    assert float(errors[-1].rstrip("%")) < float(errors[0].rstrip("%"))


def test_demo_prints_both_tables():
    result = run("demo", "--tabular", "--k", "3")
    assert result.exit_code == 0, result.output
    for word in ("Breast cancer", "Diabetes", "foba-gdt", "forward-obj", "worst perimeter", "bmi"):
        assert word in result.output
    rows = [line for line in result.output.splitlines() if line.startswith(("foba-", "forward-"))]
    assert len(rows) == 8
    refined = [line.split() for line in result.output.splitlines() if line.startswith("refined")]
    for own, others in zip(refined, (rows[:4], rows[4:]), strict=True):
        assert all(float(own[1]) <= float(other.split()[1]) for other in others)


def test_demo_refuses_a_bad_k():
    assert run("demo", "--tabular", "--k", "99").exit_code == 2
    assert run("demo", "--sensors", "0").exit_code == 2


def test_version_and_help():
    assert run("version").output.strip() == forback.__version__
    assert "demo" in run("--help").output


def test_without_typer_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r'pip install "forback\[cli\]"'):
        main()


def test_the_demo_needs_nothing_but_its_own_extra(without_extras):
    without_extras(
        "sys.argv = ['forback', 'demo', '--sensors', '2', '--steps', '4000']\n"
        "from forback.cli import main\nmain()\n",
        but=("typer",),
    )


def test_tables_align():
    text = format_table(["a", "long header"], [["xyz", "1"], ["b", "2"]])
    assert text.splitlines() == ["a    long header", "---  -----------", "xyz  1", "b    2"]


WARMED = """
import importlib, pkgutil
from pathlib import Path
import numpy as np
from scipy import sparse
import forback
from forback import FobaClassifier, FobaRegressor
from forback.warm import warm_up

def compiled():
    for found in pkgutil.walk_packages(forback.__path__, "forback."):
        if ".kernels" not in found.name:
            continue
        module = importlib.import_module(found.name)
        for name, kernel in vars(module).items():
            if getattr(kernel, "signatures", None) and Path(kernel.stats.cache_path).is_dir():
                yield from ((f"{found.name}.{name}", one) for one in kernel.signatures)

warm_up(lambda line: None)
kept = set(compiled())
print(*sorted({name for name, _ in kept}), sep="\\n")
X = np.random.default_rng(0).normal(size=(90, 6)) + 3.0
for stored in (X, np.asfortranarray(X), X.astype(np.float32), sparse.csr_array(X)):
    for method in ("foba-gdt", "foba-obj"):
        FobaRegressor(k=2, method=method).fit(stored, X[:, 1])
        FobaRegressor(k=2, method=method, loss="huber").fit(stored, X[:, 1])
        FobaClassifier(k=2, method=method).fit(stored, np.arange(90) % 2)
        FobaClassifier(k=2, method=method).fit(stored, np.arange(90) % 3)
assert set(compiled()) == kept, set(compiled()) - kept
"""


def test_warm_compiles_the_kernels_and_keeps_them_on_disk():
    run = subprocess.run([sys.executable, "-c", WARMED], check=True, capture_output=True, text=True)
    kept = set(run.stdout.split())
    modules = {name.removeprefix("forback.").rpartition(".")[0] for name in kept}
    linear = {f"objectives.linear.kernels.{name}" for name in ("lines", "losses", "newton", "rows")}
    chain = {
        f"objectives.chain.kernels.{name}" for name in ("forward_backward", "log_space", "changes")
    }
    assert linear | chain <= modules
    assert {"designs.kernels.column_sums", "designs.kernels.sparse_rows"} <= modules
    assert {"solvers.kernels.cholesky", "solvers.kernels.vectors"} <= modules
    assert {"objectives.softmax.kernels", "objectives.graph.kernels.curvature"} <= modules


def forback_in_a_process(*words, **kwargs):
    command = [sys.executable, "-m", "forback", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, **kwargs)


def test_python_m_forback_is_the_command_forback():
    done = forback_in_a_process("version", stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == forback.__version__


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["version"], ["--help"]])
def test_a_full_disk_is_one_line_and_no_traceback(words):
    with open("/dev/full", "w") as full:
        done = forback_in_a_process(*words, stdout=full)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "forback: standard output cannot be written to: No space left on device"


def test_a_closed_output_is_no_crash():
    code = "import sys; sys.stdout = None; from forback.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "version"], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_another_file_that_cannot_be_written_is_named(monkeypatch):
    def fails():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cache.nbc")

    monkeypatch.setattr(cli, "make_app", lambda: fails)
    with pytest.raises(SystemExit, match=r"^forback: .*No space left on device: 'cache\.nbc'$"):
        main()
