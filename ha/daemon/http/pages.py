"""A page of a daemon's HTTP face, whoever serves it."""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Final

from ha.record import dataclass, field

METHODS: Final = "GET, HEAD, OPTIONS"
"""Balancers ask with any of these; all get the same status."""


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What a page is at this moment."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """More than its type and its length."""


Page = Callable[[str], PageAnswer]
"""Given the query, what follows the question mark."""


class Headers:
    """What a request says in its headers, as far as an answer depends on it."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        every = [(name.lower(), value.decode("latin-1")) for name, value in headers]
        found = dict(every)
        self.host = found.get(b"host")
        self.accept = found.get(b"accept", "")
        self.authorization = tuple(value for name, value in every if name == b"authorization")
        self.cookie = "; ".join(value for name, value in every if name == b"cookie")

    def is_like(self, other: "Headers") -> bool:
        """Return whether both show the same of their caller."""
        return (self.authorization, self.cookie) == (other.authorization, other.cookie)


def json_answer(shown: Mapping[str, object], status: int = HTTPStatus.OK) -> PageAnswer:
    """Return an object as JSON."""
    text = json.dumps(shown, default=str)
    return PageAnswer(status, "application/json; charset=utf-8", text.encode())


def text_answer(text: str, status: int = HTTPStatus.OK) -> PageAnswer:
    """Plain text."""
    return PageAnswer(status, "text/plain; charset=utf-8", text.encode())
