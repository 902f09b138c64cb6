"""What holds for all tests: their order, a fresh log for each, and a short report of a failure."""

import asyncio
import random
import signal
from collections.abc import Callable, Generator, Mapping
from typing import Any

import hypothesis
import kazoo.protocol.connection
import kazoo.retry
import pytest
import structlog
import structlog.dev

from ha.daemon.event_loop import PlainLoop, fast_loop, uvloop_installed
from ha.security import own_tls
from tests import balance, effects
from tests.ha.security.kdc import Kdc, running_kdc
from tests.needs import KDC
from tests.patient_loop import patient_loop

KEPT_LINES = 40
PLAIN_LINES = structlog.dev.ConsoleRenderer(
    colors=False, exception_formatter=structlog.dev.plain_traceback
)
LONGEST = (
    "tests/campaigns/soak/faults/test_soak",
    "tests/cluster/test_cluster_commands",
    "tests/cluster/test_disasters",
    "tests/cluster/test_files",
    "tests/cluster/test_mistakes",
    "tests/ha/web/test_page",
    "tests/ha/zkfc/test_superseded",
    "tests/hosts/",
    "tests/interop/test_mixed",
    "tests/namenode_sim/namespace/snapshots/",
    "tests/simulation/",
    "tests/spark/",
)
"""Begun first: a file that takes minutes and comes last keeps one core idle."""
BOTH_LOOPS = (
    "tests/ha/daemon/",
    "tests/ha/rpc/",
    "tests/journal/links/",
    "tests/journal/node/test_lane",
    "tests/journal/node/test_process",
    "tests/journal/node/test_service",
    "tests/journal/node/test_transfer",
    "tests/datanode/test_connection",
    "tests/datanode/test_xceiver",
    "tests/namenode_sim/process/",
)
"""Run on asyncio's loop and on uvloop's: what has to do with sockets, signals and timers."""
ONE_LOOP = (
    "tests/ha/daemon/test_exposure",
    "tests/ha/rpc/test_cut_short",
    "tests/journal/links/test_cut_short",
)
"""But not the first: its daemons are processes of their own, with a loop of their own; nor the
others, whose lives are many."""
STANDSTILLS = (
    "tests/ha/daemon/test_event_loop",
    "tests/ha/daemon/test_process",
    "tests/ha/elector/test_traps",
    "tests/ha/health/test_monitor",
    "tests/ha/zkfc/test_witness_runner",
)
"""What a standstill of this process does to a daemon is tested here: on the loop as it is."""


# A busy machine is slow now and then; how long an example takes says nothing of what is tested.
hypothesis.settings.register_profile(
    "busy",
    hypothesis.settings.default,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("busy")

# kazoo's threads draw the jitter of pings and retries from the module ``random``, and hypothesis
# takes a change of that for one by a strategy: a client that goes on behind its test, whose server
# is gone, fails a property of a later one.
for module in (kazoo.protocol.connection, kazoo.retry):
    setattr(module, "random", random.Random())  # noqa: B010 - it has the type of a module

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Begun in the background of a script, where a shell ignores it; processes to which a test sends
    # one would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # the same, with nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Look at what each test leaves behind, and at what it shows; plugins see all fixtures."""
    fast_loop().close()  # uvloop's first one opens a pipe that it keeps
    config.pluginmanager.register(balance)
    config.pluginmanager.register(effects)


def pytest_asyncio_loop_factories(
    config: pytest.Config,
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run some tests on both loops; a factory that stands alone is not shown in their names."""
    plain = PlainLoop if item.nodeid.startswith(STANDSTILLS) else patient_loop
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": plain}
    both = item.nodeid.startswith(BOTH_LOOPS) and not item.nodeid.startswith(ONE_LOOP)
    if both and uvloop_installed():
        loops["uvloop"] = fast_loop
    return loops


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.fixture(autouse=True)
def _own_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back the certificate under which a command that a test ran here has left us calling."""
    monkeypatch.setattr(own_tls, "_own", vars(own_tls)["_own"])
    monkeypatch.setattr(own_tls, "_pages", vars(own_tls)["_pages"])


@pytest.fixture(autouse=True)
def _a_fresh_log() -> None:
    """Reset the log level: a command that a test ran here may have raised it for all after.

    Without the tracebacks of rich, which show every local: to load it and to draw the first one
    takes a busy machine seconds, in the loop of a server whose answer a test waits for.
    """
    structlog.reset_defaults()
    structlog.get_config()["processors"][-1] = PLAIN_LINES


def tail(text: str, kept: int = KEPT_LINES) -> str:
    """Return the last lines of a captured output, and how many were left out before them."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= kept:
        return text
    return f"... {len(lines) - kept} lines left out ...\n" + "".join(lines[-kept:])


# A CI log is read from its end, so the reason of a failure must stand there.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, Any, pytest.TestReport]:
    """Trim what a failing test printed and logged, not its traceback."""
    report: pytest.TestReport = yield
    if report.failed:
        report.sections = [(name, tail(text)) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Generator[Kdc]:
    """Run a KDC with alice, bob and the services on localhost; this process is in its realm."""
    if not KDC.here:
        KDC.skip()
    with running_kdc(tmp_path_factory.mktemp("kdc")) as kdc, pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        yield kdc
