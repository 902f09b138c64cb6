"""What Spark calls the columns of our tables, and where users say which data they mean."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

_WORDS: Final[Mapping[Any, str]] = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
}
_YES_AND_NO: Final = {"true": True, "false": False}


def ddl_of(columns: Mapping[str, Any]) -> str:
    """Return the columns as Spark's schema."""
    return ", ".join(f"`{name}` {_WORDS[kind]}" for name, kind in columns.items())


def path_of(options: Mapping[str, str]) -> str:
    """Return the path that ``load`` was given; ``file:`` URIs are paths, too.

    Raises:
        ValueError: if there is none, or it is on another file system.
    """
    text = options.get("path") or ""
    parts = urlsplit(text)
    if parts.scheme == "file":
        return unquote(parts.path)
    if not text or "://" in text:
        raise ValueError(
            f"load() was given {text!r}; expected a path that this machine and all executors can "
            "read. Copy the file to a disk that they share first"
        )
    return text


def chosen(options: Mapping[str, str], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that the option ``columns`` names, in its order; by default all.

    Raises:
        ValueError: if one is unknown or there twice.
    """
    text = options.get("columns") or ""
    names = [name.strip() for name in text.split(",") if name.strip()]
    odd = [name for name in names if name not in columns or names.count(name) > 1]
    if odd:
        raise ValueError(
            f"option columns: {odd[0]!r} is unknown or there twice; there are {', '.join(columns)}"
        )
    return {name: columns[name] for name in names} if names else dict(columns)


def flag(options: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false, and false if it is not given.

    Raises:
        ValueError: if it is neither.
    """
    text = (options.get(name) or "false").strip().lower()
    if text not in _YES_AND_NO:
        raise ValueError(f"option {name} is {text!r}, expected true or false")
    return _YES_AND_NO[text]
