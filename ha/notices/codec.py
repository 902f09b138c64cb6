"""Dataclasses as JSON and back, from the types of their fields; complaints quote what was found.

Times are RFC 3339 in UTC with milliseconds, texts are cut to MAX_TEXT, what is not known is null.
Reading passes over unknown keys, which are of a newer version.  A key that is missing counts as
null, and null as the field's default where it has one.  ``entries`` reads status pages, which may
be an older daemon's: what does not fit is not known.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from itertools import islice
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from ha.record import dataclass

T = TypeVar("T")

MAX_TEXT: Final = 2000
"""Characters of one text that are kept: a znode must stay far below ZooKeeper's 1 MiB."""
MAX_ENTRY_CHARACTERS: Final = 300
"""Characters of a text in a daemon's page that are kept: it fits a row."""
MOST_OBJECTS: Final = 64
"""Objects in a list of a daemon's page that are kept."""


class BadNotice(Exception):
    """A znode's bytes that are no notice of its kind; the text quotes what was found."""


class _Misfit(Exception):
    """A value that is not what its text says is wanted."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type look in JSON; ``read`` raises _Misfit, or BadNotice from deeper."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class Codec(Generic[T]):
    """Writes and reads one kind of notice; ``name`` stands in complaints."""

    def __init__(self, kind: type[T], name: str) -> None:
        self._name = name
        self._form = _object(kind, name)

    def to_json(self, notice: T) -> dict[str, object]:
        """Return its keys, in the order of the fields; none is ever left out."""
        written: dict[str, object] = self._form.write(notice)
        return written

    def encode(self, notice: T) -> bytes:
        """Return the bytes of the znode."""
        return json.dumps(self.to_json(notice)).encode()

    def decode(self, data: bytes) -> T:
        """Return the value that the bytes encode.

        Raises:
            BadNotice: they encode no such notice.
        """
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as failure:
            raise BadNotice(f"no {self._name}: {len(data)} bytes, {data[:80]!r}") from failure
        notice: T = self._form.read(found)
        return notice


def time_text(moment: datetime) -> str:
    """Format as RFC 3339 in UTC with milliseconds; raise ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; notices are in UTC")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _same(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return value


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Misfit("a text")
    return value.encode("utf-8", "replace").decode()  # half a surrogate pair fits no terminal


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Misfit("true or false")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise _Misfit("a whole number")
    return value


def _number(value: object) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)  # Python reads and writes NaN, JSON has none
    except OverflowError:
        pass
    raise _Misfit("a number")


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        raise _Misfit("a time such as 2026-01-31T12:00:00.000Z") from None
    if moment.tzinfo is None:
        raise _Misfit("a time with its zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # somebody's "for ever", 9999-12-31T23:59:59-05:00, is year 10000
        raise _Misfit("a time whose UTC is in the calendar") from None


_PLAIN: Final = {
    str: _Form(_short, _text),
    bool: _Form(_same, _flag),
    int: _Form(_same, _whole),
    float: _Form(_same, _number),
    datetime: _Form(time_text, _moment),
}


def _words(kind: type[StrEnum]) -> _Form:
    def read(value: object) -> StrEnum:
        try:
            return kind(_text(value))
        except ValueError:
            raise _Misfit("one of " + ", ".join(kind)) from None

    return _Form(lambda word: word.value, read)


def _optional(form: _Form) -> _Form:
    return _Form(
        lambda value: None if value is None else form.write(value),
        lambda value: None if value is None else form.read(value),
    )


def _list(form: _Form) -> _Form:
    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _Misfit("a list")
        return tuple(form.read(item) for item in value)

    return _Form(lambda value: [form.write(item) for item in value], read)


def _of_type(hint: Any, name: str) -> _Form:  # noqa: ANN401 - any annotation
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, UnionType):
        (kind,) = (part for part in get_args(hint) if part is not NoneType)
        return _optional(_of_type(kind, name))
    if get_origin(hint) is tuple:
        return _list(_of_type(get_args(hint)[0], name))
    return _words(hint) if issubclass(hint, StrEnum) else _object(hint, name)


def _object(kind: type, name: str) -> _Form:
    hints = get_type_hints(kind)
    parts = [
        (field, _of_type(hints[field.name], f"{name} ({field.name})")) for field in fields(kind)
    ]

    def write(value: object) -> dict[str, Any]:
        return {field.name: form.write(getattr(value, field.name)) for field, form in parts}

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise BadNotice(f"no {name}: a JSON object is wanted, found {str(value)[:80]!r}")
        known = {}
        for field, form in parts:
            found = value.get(field.name)
            if found is None and field.default is not MISSING:
                continue
            try:
                known[field.name] = form.read(found)
            except _Misfit as wanted:
                raise BadNotice(
                    f"no {name}: {field.name} should be {wanted}, found {str(found)[:80]!r}"
                ) from None
        return kind(**known)

    return _Form(write, read)


def entry(kind: type[T], found: object) -> T | None:
    """Return what a daemon's page has where it is of this type, else None; a text is cut."""
    value: T | None = _fitting(kind, found)
    return value


def entries(kind: type, page: Mapping[str, object], names: Iterable[str]) -> dict[str, Any]:
    """Return these fields of a dataclass from a page; None or no items where one does not fit."""
    hints = _hints(kind)
    return {name: _fitting(hints[name], page.get(name)) for name in names}


def _fitting(hint: Any, found: object) -> Any:  # noqa: ANN401 - any annotation, any value
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        items = found if isinstance(found, list) else []
        fit = (value for item in items if (value := _fitting(kind, item)) is not None)
        return tuple(islice(fit, MOST_OBJECTS) if is_dataclass(kind) else fit)
    if is_dataclass(hint):
        return _fitting_object(cast("type", hint), found)
    if hint is str and isinstance(found, str):
        found = found[:MAX_ENTRY_CHARACTERS]
    try:
        value = _PLAIN[hint].read(found)
    except _Misfit:
        return None
    return None if value == "" else value


def _fitting_object(kind: type, found: object) -> object:
    """Return an object of which all fields fit that may not be None; else None."""
    if not isinstance(found, dict):
        return None
    known = entries(kind, found, _hints(kind))
    unfit = (
        name for name, hint in _hints(kind).items()
        if known[name] is None and not isinstance(hint, UnionType)
    )  # fmt: skip
    return None if any(unfit) else kind(**known)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
