"""Numbers as people read them; exact ones are in the JSON."""

from typing import Final

_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_COUNTS: Final = ("", "k", "M", "G", "T")


def size(count: float) -> str:
    """Bytes with three digits and a binary unit: 1.46 GiB."""
    return _scale(count, 1024, _BYTES)


def brief(count: float) -> str:
    """Write a count with three digits: 4.27 M."""
    return _scale(count, 1000, _COUNTS)


def full(count: float) -> str:
    """Write a count with all digits: 4,271,006."""
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """Write a share of a hundred: one decimal below 10, and a little is not shown as nothing."""
    if 0 < share < 0.1:
        return "< 0.1 %"
    return f"{share:,.0f} %" if share >= 9.95 or share == 0 else f"{share:.1f} %"


def trim(text: str) -> str:
    """Remove needless zeros from a border of a range: 1.00 MiB is 1 MiB."""
    number, _, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}".rstrip()


def _scale(count: float, step: int, names: tuple[str, ...]) -> str:
    place, left = 0, abs(count)
    # 999.5 would be shown as 1000 of the smaller unit.
    while left >= step - 0.5 and place < len(names) - 1:
        left /= step
        place += 1
    digits = 0 if place == 0 or left >= 99.95 else 1 if left >= 9.995 else 2
    sign = "-" if count < 0 else ""
    return f"{sign}{left:.{digits}f} {names[place]}".rstrip()


def shorten(path: str, width: int) -> str:
    """Shorten a long path in its middle: its beginning and its end say most.

    It is cut between names if the first and the last name fit.
    """
    if len(path) <= width:
        return path
    names = path.split("/")
    begin, end = "/".join(names[:2]), names[-1]
    if len(names) < 4 or len(begin) + len(end) + 3 > width:
        kept = (width - 1) * 2 // 3
        return f"{path[: width - 1 - kept]}…{path[-kept:]}"
    for name in reversed(names[2:-1]):
        if len(begin) + len(name) + len(end) + 4 > width:
            break
        end = f"{name}/{end}"
    return f"{begin}/…/{end}"
