"""What tests cause must be seen: effects.txt names log lines and metrics for tests that exist.

A test that is in the table fails where it ends without a line of each event and an update of each
metric that stand there for it.  So what operators see is held by the tests that bring it about,
with no line in them; tests/architecture holds what lines and updates contain.  These are pytest's
hooks.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import prometheus_client
import pytest
import structlog

TABLE: Final = Path(__file__).with_name("effects.txt")
UPDATES: Final[Mapping[type, tuple[str, ...]]] = {
    prometheus_client.Counter: ("inc",),
    prometheus_client.Gauge: ("inc", "dec", "set", "set_function"),
    prometheus_client.Histogram: ("observe",),
}

Effects = Mapping[str, frozenset[str]]
"""By test: ``file::function``, or ``file::function[parameter]`` where one of several shows them."""


def read_table(lines: Iterable[str]) -> Effects:
    """Return what each test must show; below the name of a file stand its tests, with effects."""
    found, file = dict[str, frozenset[str]](), ""
    for line in lines:
        if line.startswith(" "):
            test, _, effects = line.strip().partition(": ")
            found[f"{file}::{test}"] = frozenset(effects.split())
        else:
            file = line
    return found


def stem(metric: str) -> str:
    """Return a metric's name as it is in the table: the library leaves a counter's suffix off."""
    return re.sub("_total$", "", metric)


@contextmanager
def seen() -> Generator[Callable[[], set[str]]]:
    """Yield how to get the events that are logged, and the metrics that are updated, in here."""
    events, updated = set[str](), set[Any]()

    def note_event(_logger: object, _method: str, line: Any) -> Any:  # noqa: ANN401 - structlog's
        events.add(str(line["event"]))
        return line

    def noting(update: Callable[..., object]) -> Callable[..., object]:
        def note(metric: Any, *given: object, **named: object) -> object:  # noqa: ANN401 - any kind
            updated.add(metric)
            return update(metric, *given, **named)

        return note

    processors = structlog.get_config()["processors"]
    processors.insert(0, note_event)
    with pytest.MonkeyPatch.context() as patch:
        for kind, names in UPDATES.items():
            for name in names:
                patch.setattr(kind, name, noting(getattr(kind, name)))
        yield lambda: events | {one.name for metric in updated for one in metric.describe()}
    if note_event in processors:
        processors.remove(note_event)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    wanted = ROWS.get(item.nodeid) or ROWS.get(item.nodeid.partition("[")[0])
    if wanted is None:
        return (yield)
    with seen() as found:
        result = yield
        missing = wanted - found()
    assert not missing, f"logs or counts no more (effects.txt): {', '.join(sorted(missing))}"
    return result


ROWS = read_table(TABLE.read_text().splitlines())
