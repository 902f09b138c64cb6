"""Directories as the configuration names them."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> Path:
    """Return the directory in an entry of ``dfs.namenode.name.dir`` and the like: a path or a URI.

    Raises:
        ValueError: for a URI of another scheme.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"{uri!r} is not a local directory: expected a path or file:///path")
    return Path(unquote(parts.path)) if parts.scheme else Path(uri)
