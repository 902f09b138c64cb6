"""Counters and histograms of RPC servers; labels are known methods only, never a peer's words."""

from dataclasses import dataclass
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)

OUTCOMES: Final = ("success", "refused", "failed")

CALLS = Counter("nnha_rpc_calls_total", "Calls answered.", ["protocol", "method", "outcome"])
SECONDS = Histogram(
    "nnha_rpc_call_seconds",
    "From a call's arrival to its answer.",
    ["protocol", "method"],
    buckets=_BUCKETS,
)
CONNECTIONS = Gauge("nnha_rpc_connections", "Open connections.")
IN_FLIGHT = Gauge("nnha_rpc_calls_in_flight", "Calls taken and not yet answered.")
BUFFERED = Gauge("nnha_rpc_buffered_bytes", "Bytes of frames that are half received.")
STARVED = Counter(
    "nnha_rpc_starved_total", "Times that a connection was not read from: the budget was spent."
)
HANGUPS = Counter("nnha_rpc_hangups_total", "Connections that this side closed.", ["cause"])


@dataclass(frozen=True, slots=True)
class MethodMeters:
    """One method's meters, looked up once: a label lookup costs as much as a small call."""

    seconds: Histogram
    succeeded: Counter
    refused: Counter
    failed: Counter


class Meters:
    """The meters of the methods that were ever called.

    A histogram of each of a hundred known methods would make /metrics a page of 2,000 lines, and
    the event loop stand still for 50 ms while it is written.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], MethodMeters] = {}

    def of(self, protocol: str, method: str) -> MethodMeters:
        """Those of a method that is known here: never of a peer's words."""
        found = self._found.get((protocol, method))
        if found is None:
            short = protocol.rpartition(".")[2]
            outcomes = (CALLS.labels(short, method, outcome) for outcome in OUTCOMES)
            found = MethodMeters(SECONDS.labels(short, method), *outcomes)
            self._found[protocol, method] = found
        return found


UNKNOWN = CALLS.labels("unknown", "unknown", "refused")
"""Calls of methods that are not served here."""
