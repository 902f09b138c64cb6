"""Asks a daemon for one page of ``ha.daemon.http.probes`` and says what its answer means.

A container's health check runs this every few seconds, on a host that may have no time to spare.
So it imports little: click would double its cost.
"""

import socket
import time
from typing import Final, NamedTuple

from ha.console.exit_codes import DONE, FAILED, UNHEALTHY, UNREACHABLE

PAGES: Final = {"livez": "live", "readyz": "ready", "active": "active", "standby": "standby"}
"""By page: what a daemon is that answers it with 200."""
TIMEOUT_SECONDS: Final = 3.0
MOST_BYTES: Final = 16 * 1024
_OK: Final = 200
_NOT_NOW: Final = 503
_SCHEME: Final = "http://"


class Question(NamedTuple):
    """Which page of which daemon; ``host`` without the brackets of IPv6."""

    host: str
    port: int
    page: str


class ProbeResult(NamedTuple):
    """The text to print, and the exit code."""

    exit_code: int
    text: str


def parse(address: str) -> Question:
    """Parse ``[http://][HOST:]PORT[/PAGE]``; by default the host is this one, the page /livez.

    Raises:
        ValueError: it is no such address; the text says why.
    """
    place, slash, page = address.removeprefix(_SCHEME).partition("/")
    if "://" in address.removeprefix(_SCHEME):
        raise ValueError(f"{address} has another scheme; each port takes plain http")
    host, _, port = place.rpartition(":")
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 2**16):
        raise ValueError(f"{address} has no port from 1 to 65535: [HOST:]PORT[/PAGE]")
    page = page if slash and page else "livez"
    if page not in PAGES:
        raise ValueError(f"there is no page /{page} for probes, but /{', /'.join(PAGES)}")
    return Question(host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port), page)


def answer(question: Question, timeout_seconds: float = TIMEOUT_SECONDS) -> ProbeResult:
    """Ask, and judge what came.

    A refused connection means that no process listens; silence proves nothing.
    """
    try:
        said = _ask(question, time.monotonic() + timeout_seconds)
    except ConnectionRefusedError:
        return ProbeResult(FAILED, f"down: nobody listens on {question.host}:{question.port}")
    except TimeoutError:
        return ProbeResult(UNREACHABLE, f"unknown: no answer within {timeout_seconds:g} s")
    except OSError as failure:
        return ProbeResult(UNREACHABLE, f"unknown: {failure}")
    return judge(question.page, said)


def judge(page: str, said: bytes) -> ProbeResult:
    """Judge a daemon by its answer `said` to a request for `page`; pure."""
    head, _, body = said.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        return ProbeResult(UNREACHABLE, "unknown: the answer is no HTTP")
    status = int(words[1])
    if status == _OK:
        return ProbeResult(DONE, PAGES[page])
    if status == _NOT_NOW and page != "livez":
        return ProbeResult(UNHEALTHY, f"not {PAGES[page]}{_reason(body)}")
    return ProbeResult(UNREACHABLE, f"unknown: HTTP status {status}, which no daemon of nnha gives")


def _ask(question: Question, deadline: float) -> bytes:
    host, port, page = question
    with socket.create_connection((host, port), timeout=_seconds_left(deadline)) as connection:
        connection.sendall(f"GET /{page} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        said = b""
        while len(said) < MOST_BYTES:
            connection.settimeout(_seconds_left(deadline))
            piece = connection.recv(MOST_BYTES)
            if not piece:
                break
            said += piece
    return said


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _reason(body: bytes) -> str:
    """Return why it is not, if the daemon gives a reason; it gives none to strangers."""
    # Loaded here: a daemon that is well gives no reason.
    import json

    try:
        told = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(told, dict):
        return ""
    reason = told.get("reason") or told.get("state")
    return f": {reason}" if isinstance(reason, str) else ""
