"""Logging of a daemon: one JSON object a line on stderr, plain text when a person is looking."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO, cast

import structlog
from prometheus_client import Counter

from ha.daemon.log_limit import LineLimit, cut
from ha.daemon.stderr import LossyStream, sturdy_stderr
from ha.record import dataclass
from ha.security.audit_text import escape

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

LEVELS: Final = tuple(_LEVELS)
FORMS: Final = ("json", "text")

_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%fZ"
"""ISO 8601 in UTC; spelt out, because isoformat() drops the microseconds when they are zero."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a daemon's command line says of its log; ``form`` None: what suits the reader."""

    level: str = "info"
    form: str | None = None


def configure_logging(
    process: str, *, level: str = "info", libraries: str = "warning", form: str | None = None
) -> None:
    """Send all logs of this process to stderr, each line stamped with its name.

    Libraries that use the standard ``logging`` (kazoo, aiohttp, grpc, asyncio) are heard from
    ``libraries`` on, through the same renderer.  ``form`` is ``json`` or ``text``; without it a
    terminal gets text.  Raises ``ValueError`` for an unknown level.
    """
    for one in (level, libraries):
        if one not in _LEVELS:
            raise ValueError(f"log level {one!r}: take one of {', '.join(_LEVELS)}")
    stream = sturdy_stderr()
    text = sys.stderr.isatty() if form is None else form == "text"
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt=_TIMESTAMP, utc=True, key="timestamp"),
        _name_process(process),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if text
        else structlog.processors.JSONRenderer(default=str)
    )
    safe: list[structlog.typing.Processor] = [_on_one_line] if text else []
    tracebacks: list[structlog.typing.Processor] = (
        [] if text else [structlog.processors.format_exc_info]
    )
    structlog.configure(
        processors=[*shared, LineLimit().of_own, *tracebacks, cut, *safe, _in_order, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", stream)),
        cache_logger_on_first_use=False,
    )
    _route_standard_logging(
        stream,
        [*shared, structlog.stdlib.ExtraAdder()],
        [*tracebacks, cut, *safe, _in_order, renderer],
    )
    logging.getLogger().setLevel(_LEVELS[libraries])


def _on_one_line(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Escape control characters, which a terminal obeys: some values come from strangers."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception":
            event[name] = escape(value)
    return event


_FIRST: Final = ("timestamp", "level", "process", "event")


def _in_order(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put what a reader looks for first in front: when, how bad, who, what."""
    return {name: event[name] for name in _FIRST if name in event} | dict(event)


def _name_process(process: str) -> structlog.typing.Processor:
    def add(
        _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        event.setdefault("process", process)
        return event

    return add


def _route_standard_logging(
    stream: LossyStream,
    before: list[structlog.typing.Processor],
    after: list[structlog.typing.Processor],
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
        )
    )
    handler.addFilter(is_own_fault)
    handler.addFilter(LineLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]


MALFORMED = Counter(
    "nnha_malformed_requests",
    "Requests that were malformed, or whose sender was gone, so that a library gave up.",
    ["library"],
)


def is_own_fault(record: logging.LogRecord) -> bool:
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
