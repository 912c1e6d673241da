"""forback against its peers and against the floor of k passes over X; not part of the package."""

from importlib.util import find_spec

for needed in ("matplotlib", "pandas", "typer"):
    if find_spec(needed) is None:
        raise ImportError(f'{needed} is not installed: pip install -e ".[experiments]"')
