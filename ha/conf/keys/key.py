"""One typed configuration key: its name, parser, default and how it may be suffixed."""

from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar

from ha.record import dataclass

T_co = TypeVar("T_co", covariant=True)


class Scope(StrEnum):
    """Which suffixes a key may carry; the most specific one that is set wins."""

    GLOBAL = "global"
    NAMESERVICE = "key.<nameservice>"
    NAMENODE = "key.<nameservice>.<namenode>"


@dataclass(frozen=True, slots=True)
class Key(Generic[T_co]):
    """A key that we know.

    ``default`` is text, read by the same parser and expanded like a configured value (Hadoop's
    defaults contain ``${hadoop.tmp.dir}``); an empty default means "not set".  ``parse`` raises
    ``BadValue`` with the expected shape.  Durations parse to seconds, sizes to bytes.
    """

    name: str
    parse: Callable[[str], T_co]
    default: str
    scope: Scope
    doc: str
