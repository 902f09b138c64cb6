"""What a part logs while a test looks: the log is the whole process's, and so are stray lines.

A thread or a timer that an earlier test left writes when it likes, and a test that takes every line
for its own fails then.
"""

import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import structlog
from structlog.testing import capture_logs

Lines = list[dict[str, Any]]


@contextmanager
def captured(*events: str, here: bool = False) -> Generator[Lines]:
    """Yield the lines whose event begins with one of these names, as they come.

    A test that asserts that nothing is logged names the whole part, as ``"kerberos."``.  With
    ``here`` lines of other threads are left out.  No other line is shown.
    """
    thread = threading.get_ident()

    def only_these(_logger: object, _method: str, line: Any) -> Any:  # noqa: ANN401 - structlog's
        if str(line["event"]).startswith(events) and not (here and threading.get_ident() != thread):
            return line
        raise structlog.DropEvent

    with capture_logs(processors=[only_these]) as lines:
        yield lines  # type: ignore[misc] # of dicts, that structlog calls mutable mappings


def silenced() -> AbstractContextManager[Lines]:
    """Show no line and keep none: what is logged then is not what is tested."""
    return captured()
