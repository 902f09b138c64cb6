"""Counters and histograms of RPC servers; labels are known methods only, never a peer's words."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final, cast

from prometheus_client import REGISTRY, Counter, Gauge
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_BOUNDS: Final = (*map(str, _BUCKETS), "+Inf")

CONNECTIONS = Gauge("nnha_rpc_connections", "Open connections.")
BUFFERED = Gauge(
    "nnha_rpc_buffered_bytes",
    "Bytes of frames that are half received, or may be by a thread.",
)
STARVED = Counter(
    "nnha_rpc_starved_total", "Times that a connection was not read from: the budget was spent."
)
HANGUPS = Counter("nnha_rpc_hangups_total", "Connections that this side closed.", ["cause"])

LIMITS_MET = Counter(
    "nnha_rpc_limits_met_total",
    "Times that a limit kept a caller back or had a connection closed.",
    ["limit"],
)


class MethodMeters:
    """One method's meters: plain numbers, since the library's cost as much as a small call."""

    __slots__ = ("_buckets", "_seconds", "failed", "refused", "running", "succeeded")

    def __init__(self) -> None:
        self.succeeded = self.refused = self.failed = 0
        self.running = 0
        self._seconds = 0.0
        self._buckets = [0] * (len(_BUCKETS) + 1)

    def took(self, seconds: float) -> None:
        """Count the end of a call that took ``seconds``."""
        self.running -= 1
        self._seconds += seconds
        self._buckets[bisect_left(_BUCKETS, seconds)] += 1

    def add(self, other: "MethodMeters") -> None:
        """Count what another one has counted of the same method."""
        self.succeeded += other.succeeded
        self.refused += other.refused
        self.failed += other.failed
        self.running += other.running
        self._seconds += other._seconds
        self._buckets = [a + b for a, b in zip(self._buckets, other._buckets, strict=True)]

    def outcomes(self) -> dict[str, int]:
        """Return the number of calls by outcome."""
        return {"success": self.succeeded, "refused": self.refused, "failed": self.failed}

    def histogram(self) -> tuple[list[tuple[str, float]], float]:
        """Return the number of calls up to each bound, and the seconds of all."""
        counts = map(float, accumulate(self._buckets))
        return list(zip(_BOUNDS, counts, strict=True)), self._seconds


class Meters:
    """The meters of the methods that were ever called.

    A histogram of each of a hundred known methods would make /metrics a page of 2,000 lines, and
    the event loop stand still for 50 ms while it is written.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], MethodMeters] = {}
        self._beside: set[Meters] = set()
        self.unknown = 0
        """Calls of methods that are not served here."""

    def of(self, protocol: str, method: str) -> MethodMeters:
        """Return those of a method; it must be one that is known here, never a peer's words."""
        found = self._found.get((protocol, method))
        if found is None:
            found = self._found[protocol, method] = MethodMeters()
        return found

    def open_thread_meters(self) -> "Meters":
        """Return meters that only one thread may write; they count here as well."""
        beside = Meters()
        self._beside.add(beside)
        return beside

    def close_thread_meters(self, beside: "Meters") -> None:
        """Add the meters of a thread that has ended."""
        self._beside.remove(beside)
        self._add(beside)

    def _add(self, other: "Meters") -> None:
        for names, meters in list(other._found.items()):
            self.of(*names).add(meters)

    def answered(self, protocol: str) -> int:
        """Return how many calls of a protocol were answered, however they ended."""
        return sum(
            meters.succeeded + meters.refused + meters.failed
            for some in (self, *self._beside)
            for (name, _), meters in list(some._found.items())
            if name == protocol
        )

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering costs nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the meters as of now."""
        total = Meters()
        for some in (self, *self._beside):
            total._add(some)
        called = CounterMetricFamily(
            "nnha_rpc_calls", "Calls answered.", labels=["protocol", "method", "outcome"]
        )
        called.add_metric(["unknown", "unknown", "refused"], self.unknown)
        took = HistogramMetricFamily(
            "nnha_rpc_call_seconds",
            "From a call's arrival to its answer.",
            labels=["protocol", "method"],
        )
        for (protocol, method), meters in total._found.items():
            names = [protocol.rpartition(".")[2], method]
            for outcome, number in meters.outcomes().items():
                called.add_metric([*names, outcome], number)
            took.add_metric(names, *meters.histogram())
        yield called
        yield took
        yield GaugeMetricFamily(
            "nnha_rpc_calls_in_flight",
            "Calls taken and not yet answered.",
            sum(meters.running for meters in total._found.values()),
        )


METERS: Final = Meters()
"""Of all servers of this process."""
REGISTRY.register(cast("Collector", METERS))
