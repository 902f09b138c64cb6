"""Logging of a daemon: one JSON object a line on stderr, plain text when a person is looking."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from ha.daemon.stderr import SturdyStream, sturdy_stderr

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

_TIMESTAMP = "%Y-%m-%dT%H:%M:%S.%fZ"
"""ISO 8601 in UTC; spelt out, because isoformat() drops the microseconds when they are zero."""


def configure_logging(process: str, *, level: str = "info", libraries: str = "warning") -> None:
    """Send all logs of this process to stderr, each line stamped with its name.

    Libraries that use the standard ``logging`` (kazoo, aiohttp, grpc, asyncio) are heard from
    ``libraries`` on, through the same renderer.  Raises ``ValueError`` for an unknown level.
    """
    for one in (level, libraries):
        if one not in _LEVELS:
            raise ValueError(f"log level {one!r}: take one of {', '.join(_LEVELS)}")
    stream = sturdy_stderr()
    terminal = sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt=_TIMESTAMP, utc=True, key="timestamp"),
        _named(process),
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer()
        if terminal
        else structlog.processors.JSONRenderer(default=str)
    )
    tracebacks: list[structlog.typing.Processor] = (
        [] if terminal else [structlog.processors.format_exc_info]
    )
    structlog.configure(
        processors=[*shared, *tracebacks, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", stream)),
        cache_logger_on_first_use=False,
    )
    _route_standard_logging(
        stream, [*shared, structlog.stdlib.ExtraAdder()], [*tracebacks, renderer]
    )
    logging.getLogger().setLevel(_LEVELS[libraries])


def _named(process: str) -> structlog.typing.Processor:
    def add(
        _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        event.setdefault("process", process)
        return event

    return add


def _route_standard_logging(
    stream: SturdyStream,
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
