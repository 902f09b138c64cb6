"""A page of a daemon's HTTP face, whoever serves it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page is at this moment."""

    status: int
    content_type: str
    body: bytes


Page = Callable[[], Answer]
