"""What tables and scripts say of racks.  Pure.

See docs/reference/datanodes.md#racks.
"""

from collections.abc import Mapping, Sequence
from typing import Final

MOST_CHARACTERS: Final = 256
_COLUMNS: Final = 2


def depth(rack: str) -> int:
    """Return on how many levels a rack lies: 1 for /rack, 2 for /hall/rack."""
    return rack.count("/")


def rack_named(text: str) -> str | None:
    """Return a rack as it is compared (NodeBase.normalize); None if it is no name of a rack."""
    name = text.rstrip("/")
    valid = name.startswith("/") and "//" not in name and name.isprintable()
    return name if valid and len(name) <= MOST_CHARACTERS else None


def table_of(text: str) -> tuple[Mapping[str, str], int]:
    """Read a table of two columns; return the racks by host, and how many lines were passed over.

    Host names are compared without case, as addresses are.
    """
    found: dict[str, str] = {}
    bad = 0
    for line in text.splitlines():
        columns = line.split()
        if not columns or columns[0].startswith("#"):
            continue
        rack = rack_named(columns[1]) if len(columns) == _COLUMNS else None
        if rack is None:
            bad += 1
        else:
            found[columns[0].lower()] = rack
    return found, bad


def racks_printed(output: str, names: Sequence[str]) -> Mapping[str, str] | str:
    """Return the racks that a script has printed, one for each name, or what is wrong with it."""
    words = output.split()
    if len(words) != len(names):
        return f"it printed {len(words)} racks, {len(names)} were asked for"
    racks = [rack_named(word) for word in words]
    for word, rack in zip(words, racks, strict=True):
        if rack is None:
            return f"it printed {word[:64]!r}, which is no rack: a rack begins with /"
    return {name: rack for name, rack in zip(names, racks, strict=True) if rack is not None}
