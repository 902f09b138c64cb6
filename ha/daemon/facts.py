"""What a daemon is: its version, its configuration's hash, its start, its openness.

/metrics, /status and the daemon's first page show it.  Nothing of this is worked out before
somebody asks.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import CollectorRegistry

from ha.conf.configuration import COMMAND_LINE, Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.cluster import NAMENODE_ID, NAMESERVICE_ID
from ha.conf.keys.security import SECURITY_MODE, Mode
from ha.conf.keys.web import WEB_URL
from ha.conf.secrets import shown_value
from ha.daemon.version import version
from ha.record import dataclass

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_OWN: Final = (NAMENODE_ID.name, NAMESERVICE_ID.name)
"""Keys that differ from machine to machine on purpose."""
COMMIT_VARIABLE: Final = "NNHA_COMMIT"
"""Where a package or an image says from which commit it was built."""


_PROVEN: Final = frozenset({"rpc", "http"})
"""Interfaces whose callers prove who they are, in these modes."""
_PROVING: Final = frozenset({Mode.AUTO, Mode.STRICT})


@dataclass(frozen=True, slots=True)
class AboutDaemon:
    """Which process this is; ``started_at`` is RFC 3339 in UTC."""

    version: str
    commit: str
    pid: int
    started_at: str
    config_hash: str
    """Equal on all nodes with the same configuration files."""
    insecure: tuple[str, ...]
    """The interfaces that are open without authentication."""
    config_keys: tuple[str, ...]
    """``key=hash`` for each key of the files: its value as people see it, without secrets."""


class DaemonFacts:
    """One daemon's facts; ``open_to`` names its interfaces without authentication."""

    def __init__(self, process: str, configuration: Configuration, open_to: Iterable[str]) -> None:
        self._process = process
        self._configuration = configuration
        self._open_to = tuple(open_to)
        self._started = time.time()
        self._about: AboutDaemon | None = None

    @property
    def process(self) -> str:
        """The daemon's kind, as its log names it."""
        return self._process

    @property
    def page(self) -> str | None:
        """Where ``nnha web`` shows the whole cluster, if the configuration says so."""
        return self._configuration.get(WEB_URL)

    def insecure(self) -> tuple[str, ...]:
        """Return the interfaces that are open without authentication."""
        proven = security_mode(self._configuration) in _PROVING
        return tuple(what for what in self._open_to if not (proven and what in _PROVEN))

    def about(self) -> "AboutDaemon":
        """Return what does not change while the process runs; it is computed once."""
        if self._about is None:
            started = datetime.fromtimestamp(self._started, UTC).isoformat(timespec="milliseconds")
            self._about = AboutDaemon(
                version=version(),
                commit=os.environ.get(COMMIT_VARIABLE, "unknown"),
                pid=os.getpid(),
                started_at=started.replace("+00:00", "Z"),
                config_hash=configuration_hash(self._configuration),
                insecure=self.insecure(),
                config_keys=tuple(
                    f"{name}={_short_hash(shown_value(name, value))[:8]}"
                    for name, value in _shared_settings(self._configuration)
                ),
            )
        return self._about

    def as_json(self) -> Mapping[str, object]:
        """Return the fixed keys, as /status shows them."""
        about = asdict(self.about())
        return {key: list(one) if isinstance(one, tuple) else one for key, one in about.items()}

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering costs nothing."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the facts, computed now."""
        name = {"process": self._process}
        build = {"version": version(), "commit": os.environ.get(COMMIT_VARIABLE, "unknown")}
        yield InfoMetricFamily("nnha_build", "The running version", {**build, **name})
        hashed = {"hash": configuration_hash(self._configuration)}
        yield InfoMetricFamily(
            "nnha_config_hash",
            "The hash of the configuration files, equal on all nodes with the same configuration",
            {**hashed, **name},
        )
        start = GaugeMetricFamily(
            "nnha_start_time_seconds", "When this daemon started", labels=["process"]
        )
        start.add_metric([self._process], self._started)
        yield start
        mode = GaugeMetricFamily(
            "nnha_security_mode", "1 for the value of nnha.security.mode", labels=["mode"]
        )
        mode.add_metric([security_mode(self._configuration)], 1.0)
        yield mode
        insecure = GaugeMetricFamily(
            "nnha_insecure_mode",
            "1 for each interface that is open without authentication",
            labels=["what"],
        )
        for what in self.insecure():
            insecure.add_metric([what], 1.0)
        yield insecure


_own: DaemonFacts | None = None


def publish_facts(
    process: str,
    configuration: Configuration,
    *,
    open_to: Iterable[str] = ("rpc", "http"),
    registry: CollectorRegistry = REGISTRY,
) -> None:
    """Show them from now on; called once by each daemon.

    Only what goes to the process's own registry is on its pages.
    """
    global _own
    facts = DaemonFacts(process, configuration, open_to)
    registry.register(cast("Collector", facts))
    if registry is REGISTRY:
        _own = facts


def own_facts() -> DaemonFacts | None:
    """Return those of this process; None where it is no daemon."""
    return _own


def security_mode(configuration: Configuration) -> str:
    """Return the security mode; a daemon whose mode cannot be read does not start."""
    try:
        return configuration.get(SECURITY_MODE)
    except ConfigurationError:
        return "unknown"


def configuration_hash(configuration: Configuration) -> str:
    """Return a short, stable hash of the files' keys and values, except each node's own."""
    return _short_hash(
        "\n".join(f"{name}={value}" for name, value in _shared_settings(configuration))
    )


def _shared_settings(configuration: Configuration) -> list[tuple[str, str]]:
    return sorted(
        (name, setting.value)
        for name, setting in configuration.settings.items()
        if name not in _OWN and setting.origin is not COMMAND_LINE
    )


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
