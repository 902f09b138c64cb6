"""How Hadoop's viewers print modes, ACL entries, times and sizes."""

from typing import Final

from namenode_sim.edits.values import AclEntry, AclScope

_SYMBOLS: Final = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")
_DAY_MILLIS: Final = 86_400_000
_KIBI: Final = 1024
_PREFIXES: Final = "KMGTPE"


def acl_text(entry: AclEntry) -> str:
    """Return an entry as ``default:user:bob:rw-`` (AclEntry.toString)."""
    scope = "default:" if entry.scope is AclScope.DEFAULT else ""
    return f"{scope}{entry.type.name.lower()}:{entry.name or ''}:{_SYMBOLS[entry.permission]}"


def utc_date(millis: int) -> str:
    """Return milliseconds since 1970 as ``2017-05-10T21:56:34.091``, any year.

    Python's datetime ends with the year 9999; a token that never expires has the year 292278994.
    """
    days, rest = divmod(millis, _DAY_MILLIS)
    # Civil from days, counted in eras of 400 years from 0000-03-01.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = era * 400 + year_of_era + (month <= 2)
    seconds, millis = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}"


def size_text(size: int) -> str:
    """Return a number of bytes as ``1.50 GB`` (StringUtils.byteDesc)."""
    if size < _KIBI:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_PREFIXES))
    unit = 1 << 10 * power
    shown = f"{size // unit}" if size % unit == 0 else f"{size / unit:.2f}"
    return f"{shown} {_PREFIXES[power - 1]}B"


def csv_field(text: str) -> str:
    """Return a text for one field of a line: quoted if needed, and without line breaks."""
    if not any(char in text for char in ',"\r\n'):
        return text
    quoted = '"' + text.replace('"', '""') + '"'
    if "\r\n" in quoted:
        return quoted.replace("\r\n", "%x0D%x0A")
    return quoted.replace("\n", "%x0A")
