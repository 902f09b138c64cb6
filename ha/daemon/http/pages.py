"""A page of a daemon's HTTP face, whoever serves it."""

import json
from collections.abc import Callable, Mapping
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


def json_answer(shown: Mapping[str, object], status: int = HTTPStatus.OK) -> PageAnswer:
    """Return an object as JSON."""
    text = json.dumps(shown, default=str)
    return PageAnswer(status, "application/json; charset=utf-8", text.encode())


def text_answer(text: str, status: int = HTTPStatus.OK) -> PageAnswer:
    """Plain text."""
    return PageAnswer(status, "text/plain; charset=utf-8", text.encode())
