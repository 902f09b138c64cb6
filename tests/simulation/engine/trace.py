"""What happened, one line per event; the product's own log lines are part of it."""

import hashlib
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from tests.simulation.engine.clock import PROCESS


class Trace:
    """The lines of one run, and their digest.  Without ``keep`` nothing is noted at all."""

    def __init__(self, clock: Callable[[], float], *, keep: bool) -> None:
        self.keep = keep
        self.lines: list[str] = []
        self._clock = clock

    def add(self, actor: str, what: str, fault: str = "") -> None:
        """Note one event; ``fault`` is the name by which a replay can choose it."""
        if self.keep:
            mark = f"   <- {fault}" if fault else ""
            self.lines.append(f"{self._clock():10.4f}  {actor:<4} {what}{mark}")

    def digest(self) -> str:
        """Return one number for the whole run."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def from_log(self, _logger: object, level: str, event: MutableMapping[str, Any]) -> str:
        """Add a log line of the product, for structlog."""
        process = PROCESS.get()
        facts = " ".join(f"{name}={event[name]}" for name in event if name != "event")
        shout = "!" if level in {"error", "critical"} else ""
        self.add(process.machine if process else "-", f"{shout}{event['event']} {facts}")
        raise structlog.DropEvent


@contextmanager
def traced(trace: Trace, *processors: Any) -> Iterator[None]:  # noqa: ANN401
    """Send what the product logs to this trace, through these processors of structlog."""
    config = structlog.get_config()
    structlog.configure(
        processors=[*processors, trace.from_log],
        wrapper_class=structlog.make_filtering_bound_logger(20 if trace.keep else 50),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**config)
