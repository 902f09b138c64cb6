"""Which nnha this is: the installed one, or that of the checkout that it runs from."""

import re
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """Return the version; ``unknown`` with neither an installation nor a checkout."""
    # Loaded when somebody asks: a daemon does without it for most of its life.
    from importlib import metadata

    try:
        return metadata.version("nnha")
    except metadata.PackageNotFoundError:
        return _checkout_version(Path(__file__).parents[2] / "pyproject.toml")


def _checkout_version(project: Path) -> str:
    """Find it by a pattern: tomllib would stay in a daemon's memory for one line."""
    try:
        found = re.search(r'^version = "([^"]+)"', project.read_text(), re.MULTILINE)
    except OSError:
        return "unknown"
    return f"{found[1]} (from a checkout)" if found else "unknown"
