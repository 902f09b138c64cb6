"""One look at a cluster: a common deadline, and why a process did not answer in a few words."""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar, cast

import aiohttp

from ha.conf.topology import HostPort
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.service.errors import ServiceRefused, ServiceUnreachable

MAX_ANSWER_BYTES = 1024 * 1024
MAX_TEXT_CHARACTERS = 300
AT_LEAST_SECONDS = 1.2
_SOON = 0.01

R = TypeVar("R")


class NoAnswer(Exception):
    """Why a process did not answer, in a few words for its row."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the cluster: when it must be over, and how long it may take in words."""

    deadline: float
    seconds: float

    @classmethod
    def starting_now(cls, seconds: float, *, spent_seconds: float = 0.0) -> "Look":
        """A look that must be over in so many seconds, less what the start has already taken.

        However slow the start was, the processes get ``AT_LEAST_SECONDS`` of it.
        """
        left = max(min(AT_LEAST_SECONDS, seconds), seconds - spent_seconds)
        return cls(asyncio.get_running_loop().time() + left, seconds)

    def left(self) -> float:
        """Seconds until the deadline, at least a moment."""
        return max(_SOON, self.deadline - asyncio.get_running_loop().time())

    async def ask(self, question: Awaitable[R]) -> R:
        """The answer.  Raises ``NoAnswer`` with the reason for the row."""
        try:
            async with asyncio.timeout_at(self.deadline):
                return await question
        except (ServiceRefused, ZooKeeperRefused, BadBreadcrumb, ValueError) as error:
            raise NoAnswer(f"answers with an error: {error}") from error
        except (
            TimeoutError,
            OSError,
            EOFError,
            ServiceUnreachable,
            ZooKeeperUnavailable,
            aiohttp.ClientError,
        ) as error:
            raise NoAnswer(self._in_words(error)) from error

    def _in_words(self, error: BaseException) -> str:
        causes = list(_causes(error))
        if any(isinstance(one, ConnectionRefusedError) for one in causes):
            return "not running (connection refused)"
        if any(isinstance(one, TimeoutError) for one in causes) or self.left() <= _SOON:
            return f"no answer in {self.seconds:g} s"
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        return str(error) or type(error).__name__


async def fetch(http: aiohttp.ClientSession, address: HostPort) -> Mapping[str, object]:
    """The object at /status.  Raises ``ValueError`` if it is none, ``aiohttp.ClientError``."""
    async with http.get(f"http://{address}/status", allow_redirects=False) as response:
        body = await to_the_end(response.content)
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}")
    try:
        page = json.loads(body)
    except RecursionError as failure:
        raise ValueError("its status page is nested too deeply") from failure
    if not isinstance(page, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - it is an answer's fault
    return cast("Mapping[str, object]", page)


async def to_the_end(reader: asyncio.StreamReader | aiohttp.StreamReader) -> bytes:
    """Everything until the peer closes.  Raises ``ValueError`` beyond ``MAX_ANSWER_BYTES``."""
    found = bytearray()
    while chunk := await reader.read(64 * 1024):
        found += chunk
        if len(found) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
    return bytes(found)


def _causes(error: BaseException) -> tuple[BaseException, ...]:
    """The error and what it came from, also what a happy-eyeballs connect has gathered."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or one in found:
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return tuple(found)


def whole(page: Mapping[str, object], key: str) -> int | None:
    """The entry if it is a whole number."""
    value = page.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(page: Mapping[str, object], key: str) -> float | None:
    """The entry if it is a number."""
    value = page.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # JSON knows whole numbers of any length, and Python's reader NaN and Infinity.
    with suppress(OverflowError):
        if isfinite(found := float(value)):
            return found
    return None


def text(page: Mapping[str, object], key: str) -> str | None:
    """The entry if it is a text that says something, cut to what fits a row."""
    value = page.get(key)
    return _cut(value) if isinstance(value, str) and value else None


def flag(page: Mapping[str, object], key: str) -> bool | None:
    """The entry if it is true or false."""
    value = page.get(key)
    return value if isinstance(value, bool) else None


def texts(page: Mapping[str, object], key: str) -> tuple[str, ...]:
    """The entry's texts, if it is a list of some."""
    value = page.get(key)
    found = value if isinstance(value, list) else []
    return tuple(_cut(one) for one in found if isinstance(one, str))


def _cut(said: str) -> str:
    """What fits a row; half a surrogate pair, which JSON can hold, fits no terminal."""
    return said[:MAX_TEXT_CHARACTERS].encode("utf-8", "replace").decode()
