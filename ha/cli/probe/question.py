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
_NO_HTTP: Final = (
    "unknown: the answer is no HTTP; of a port that takes HTTPS alone ask https://HOST:PORT"
)
_SCHEMES: Final = {"http": False, "https": True, "": False}
"""Whether TLS comes first; without a scheme it does not."""


class Question(NamedTuple):
    """Which page of which daemon; ``host`` without the brackets of IPv6."""

    host: str
    port: int
    page: str
    by_tls: bool = False


class ProbeResult(NamedTuple):
    """The text to print, and the exit code."""

    exit_code: int
    text: str


def parse(address: str) -> Question:
    """Parse ``[http[s]://][HOST:]PORT[/PAGE]``; by default the host is this one, the page /livez.

    Raises:
        ValueError: it is no such address; the text says why.
    """
    scheme, _, rest = address.rpartition("://")
    if scheme not in _SCHEMES:
        raise ValueError(f"{address} has another scheme than http and https")
    place, slash, page = rest.partition("/")
    host, _, port = place.rpartition(":")
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 2**16):
        raise ValueError(f"{address} has no port from 1 to 65535: [HOST:]PORT[/PAGE]")
    page = page if slash and page else "livez"
    if page not in PAGES:
        raise ValueError(f"there is no page /{page} for probes, but /{', /'.join(PAGES)}")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    return Question(host, int(port), page, _SCHEMES[scheme])


def answer(question: Question, timeout_seconds: float = TIMEOUT_SECONDS) -> ProbeResult:
    """Ask, and judge what came.

    A refused connection means that no process listens; silence proves nothing.
    """
    try:
        said = _ask(question, time.monotonic() + timeout_seconds)
    except ConnectionRefusedError:
        return ProbeResult(FAILED, f"down: nobody listens on {question.host}:{question.port}")
    except ConnectionResetError:
        said = b""
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
        return ProbeResult(UNREACHABLE, _NO_HTTP)
    status = int(words[1])
    if status == _OK:
        return ProbeResult(DONE, PAGES[page])
    if status == _NOT_NOW and page != "livez":
        return ProbeResult(UNHEALTHY, f"not {PAGES[page]}{_reason(body)}")
    return ProbeResult(UNREACHABLE, f"unknown: HTTP status {status}, which no daemon of nnha gives")


def _ask(question: Question, deadline: float) -> bytes:
    host, port, page, by_tls = question
    with _connect(host, port, deadline, by_tls=by_tls) as connection:
        connection.sendall(f"GET /{page} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        said = b""
        while len(said) < MOST_BYTES:
            connection.settimeout(_seconds_left(deadline))
            piece = connection.recv(MOST_BYTES)
            if not piece:
                break
            said += piece
    return said


def _connect(host: str, port: int, deadline: float, *, by_tls: bool) -> socket.socket:
    connection = socket.create_connection((host, port), timeout=_seconds_left(deadline))
    if not by_tls:
        return connection
    # Loaded here: most ports take plain HTTP, and TLS would double what a health check costs.
    import ssl

    # No certificate is checked: nothing secret is sent, and no file here says whom to trust.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connection:  # wrapped, it is another object
        connection.settimeout(_seconds_left(deadline))
        return context.wrap_socket(connection, server_hostname=host)


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
