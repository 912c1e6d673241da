"""forback against its peers and against the floor of k passes over X; not part of the package."""

try:
    import matplotlib  # noqa: F401
    import pandas  # noqa: F401
    import typer  # noqa: F401
except ImportError as error:
    message = f'{error.name} is not installed: pip install -e ".[experiments]"'
    raise ImportError(message) from error
