"""What libraries log as errors of ours, and is only what some stranger has sent or left unread.

Each such request would write a traceback, and whoever sends many would fill a disk.
"""

import logging

from prometheus_client import Counter

MALFORMED = Counter(
    "nnha_malformed_requests",
    "Requests that were malformed, or whose sender was gone, so that a library gave up.",
    ["library"],
)


def tells_of_us(record: logging.LogRecord) -> bool:
    """Return whether to log a library's line; one that blames a peer is counted instead."""
    library = _blaming(record)
    if library is not None:
        MALFORMED.labels(library).inc()
    return library is None


def _blaming(record: logging.LogRecord) -> str | None:
    """Return the library that complains of a peer's bytes; None for any other line."""
    cause = record.exc_info[0] if record.exc_info else None
    if cause is None:
        return None
    if record.name == "aiohttp.server":
        malformed = cause.__module__ == "aiohttp.http_exceptions"
        return "aiohttp" if malformed or issubclass(cause, ConnectionResetError) else None
    if record.name == "grpc._cython.cygrpc" and issubclass(cause, UnicodeDecodeError):
        return "grpc"
    return None
