"""The parameters of WebHDFS: their types, limits and defaults (Hadoop's resources.*Param).

Names count in any case.  One with two values is refused, as two readers may take different ones;
clients of Python repeat a value when they follow a redirect.
Pure.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_to_bytes

from ha.record import dataclass
from hadoop.webhdfs.refusals import illegal, invalid_value
from hadoop.webhdfs.token_text import decoded

PREFIX: Final = "/webhdfs/v1"
MOST_PARAMETERS: Final = 256
LONG: Final = 2**63 - 1
INT: Final = 2**31 - 1
OCTAL: Final = 8
SHORT: Final = 2**15 - 1
USER_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9._-]*[$]?$"
_ENTRY: Final = r"(default:)?(user|group|mask|other):[A-Za-z0-9._-]*:([rwx-]{3})?"

Query = Mapping[str, Sequence[str]]
"""What a request gives, by names in lower case."""
Value = Any
Parse = Callable[[str], Value]
"""Returns the value of a text; raises ValueError with the reason where it has none."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter.  ``many``: it may be given again and again."""

    parse: Parse
    default: Any = None
    many: bool = False


def _number(default: int | None, least: int, most: int = LONG, radix: int = 10) -> Param:
    def parse(text: str) -> int | None:
        if text == "null":  # Hadoop's word for none
            return default
        if not re.fullmatch(r"[+-]?[0-7]{1,40}" if radix == OCTAL else r"[+-]?[0-9]{1,40}", text):
            raise ValueError(f'Failed to parse "{text}" as a radix-{radix} integer.')
        number = int(text, radix)
        if not least <= number <= most:
            raise ValueError(f"{text} is out of the range [{least}, {most}]")
        return number

    return Param(parse, default)


def _flag(*, default: bool) -> Param:
    def parse(text: str) -> bool:
        if text.lower() not in {"true", "false"}:
            raise ValueError(f'Failed to parse "{text}" to Boolean.')
        return text.lower() == "true"

    return Param(parse, default)


def _text(pattern: str = "", *, many: bool = False) -> Param:
    """Return a text that has to match; none if it is empty."""

    def parse(text: str) -> str | None:
        if text and pattern and not re.fullmatch(pattern, text):
            raise ValueError(f'Invalid value: "{text}" does not belong to the domain {pattern}')
        return text or None

    return Param(parse, None, many)


def _choices(java_class: str, *known: str) -> Param:
    """Return some of the names that Java's enum has, in order, with commas between."""

    def parse(text: str) -> tuple[str, ...]:
        given = tuple(one.strip().upper() for one in text.split(",")) if text else ()
        for one in given:
            if one not in known:
                raise ValueError(f"No enum constant org.apache.hadoop.{java_class}.{one}")
        return given

    return Param(parse, ())


_PATH: Final = r"/(?s:.*)"
PARAMS: Final[Mapping[str, Param]] = {
    "accesstime": _number(-1, -1),
    "aclspec": _text(f"^{_ENTRY}(,{_ENTRY})*$"),
    "blocksize": _number(None, 1),
    "buffersize": _number(None, 1, INT),
    "createflag": _choices(
        "fs.CreateFlag", "CREATE", "OVERWRITE", "APPEND", "SYNC_BLOCK", "LAZY_PERSIST", "NEW_BLOCK",
        "NO_LOCAL_WRITE", "SHOULD_REPLICATE", "IGNORE_CLIENT_LOCALITY", "NO_LOCAL_RACK",
    ),
    "createparent": _flag(default=True),
    "delegation": _text(),
    "destination": _text(_PATH),
    "doas": _text(),
    "encoding": _choices("fs.XAttrCodec", "TEXT", "HEX", "BASE64"),
    "excludedatanodes": _text(),
    "flag": _choices("fs.XAttrSetFlag", "CREATE", "REPLACE"),
    "fsaction": _text("[r-][w-][x-]"),
    "group": _text(),
    "kind": _text(),
    "length": _number(None, 0),
    "modificationtime": _number(-1, -1),
    "namenoderpcaddress": _text(),
    "namespacequota": _number(LONG, -1),
    "newlength": _number(None, 0),
    "noredirect": _flag(default=False),
    "offset": _number(0, 0),
    "oldsnapshotname": _text(),
    "op": _text(),
    "overwrite": _flag(default=False),
    "owner": _text(),
    "permission": _number(None, 0, 0o1777, radix=OCTAL),
    "recursive": _flag(default=False),
    "renameoptions": _choices("fs.Options.Rename", "NONE", "OVERWRITE", "TO_TRASH"),
    "renewer": _text(),
    "replication": _number(None, 1, SHORT),
    "service": _text(),
    "snapshotdiffindex": _number(-1, -1, INT),
    "snapshotdiffstartpath": _text(),
    "snapshotname": _text(),
    "sources": _text(),
    "startafter": _text(),
    "storagepolicy": _text(),
    "storagespacequota": _number(LONG, -1),
    "storagetype": _text(),
    "token": Param(decoded),
    "unmaskedpermission": _number(None, 0, 0o1777, radix=OCTAL),
    "user.name": _text(),
    "xattr.name": _text(many=True),
    "xattr.value": _text(),
}  # fmt: skip


def query_of(text: str) -> Query:
    """Return the parameters of a query string; raise RemoteFault where it cannot be read."""
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except ValueError as error:
        raise illegal(f"The query cannot be read: {error}") from error
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name.lower(), []).append(value)
    return found


def path_of(raw: str) -> str:
    """Return the path of a file, decoded exactly once; raise RemoteFault where that fails."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", raw):
        raise illegal("The path has a percent sign without two hexadecimal digits behind it")
    try:
        text = unquote_to_bytes(raw).decode()
    except UnicodeError as error:
        raise illegal("The path is no UTF-8") from error
    if "\0" in text:
        raise illegal("The path has a zero byte in it")
    return text if text.startswith("/") else f"/{text}"


def value_of(name: str, query: Query) -> Value:
    """Return the value of a parameter; raise RemoteFault where what is given has none."""
    param, given = PARAMS[name], tuple(dict.fromkeys(query.get(name, ())))
    if len(given) > 1 and not param.many:
        raise invalid_value(name, f"it has {len(given)} values")
    try:
        found = [param.parse(text) for text in given]
    except ValueError as error:
        raise invalid_value(name, str(error)) from error
    if param.many:
        return [one for one in found if one is not None]
    return found[0] if found else param.default


def values_of(op: str, names: str, query: Query) -> dict[str, Any]:
    """Return the values of an operation's parameters; ``!`` behind a name: it must have one."""
    found = {}
    for name in names.split():
        value = found[name.rstrip("!")] = value_of(name.rstrip("!"), query)
        if name.endswith("!") and value in (None, (), []):
            plain = name.rstrip("!")
            raise illegal(f"Required param {plain} for op: {op} is null or empty")
    return found
