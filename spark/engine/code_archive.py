"""Our own code as one archive, so that executors elsewhere can import what tasks name."""

import importlib.util
import zipfile
from pathlib import Path
from typing import Final

PACKAGES: Final = ("spark", "namenode_sim", "hadoop", "journal", "ha")
"""What tasks may import; installed dependencies must be there on every executor."""

_SAME_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Zip's oldest: the same code gives the same archive."""


def root_of_code() -> Path:
    """Return the folder of our packages: a checkout, or where they are installed."""
    found = importlib.util.find_spec("spark.engine")
    if found is None or found.origin is None:
        raise RuntimeError("the package spark.engine has no files; install nnha as usual")
    return Path(found.origin).parents[2]


def pack_code(target: Path) -> Path:
    """Write our packages to a zip that Python imports from; returns ``target``.

    Raises:
        OSError: if it cannot be written.
    """
    root = root_of_code()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                info = zipfile.ZipInfo(path.relative_to(root).as_posix(), _SAME_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    return target
