"""Counters and histograms of RPC servers; labels are known methods only, never a peer's words."""

from dataclasses import dataclass

from prometheus_client import Counter, Gauge, Histogram

from ha.rpc.protocol import RpcProtocol

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)

CALLS = Counter("nnha_rpc_calls_total", "Calls answered.", ["protocol", "method", "outcome"])
SECONDS = Histogram(
    "nnha_rpc_call_seconds",
    "From a call's arrival to its answer.",
    ["protocol", "method"],
    buckets=_BUCKETS,
)
CONNECTIONS = Gauge("nnha_rpc_connections", "Open connections.")
IN_FLIGHT = Gauge("nnha_rpc_calls_in_flight", "Calls taken and not yet answered.")
HANGUPS = Counter("nnha_rpc_hangups_total", "Connections that this side closed.", ["cause"])


@dataclass(frozen=True, slots=True)
class MethodMeters:
    """One method's meters, looked up once: a label lookup costs as much as a small call."""

    seconds: Histogram
    succeeded: Counter
    refused: Counter
    failed: Counter


def meters_of(protocols: tuple[RpcProtocol, ...]) -> dict[tuple[str, str], MethodMeters]:
    """The meters of every known method, by protocol and method name."""
    meters = {}
    for protocol in protocols:
        short = protocol.name.rpartition(".")[2]
        for method in protocol.methods:
            outcomes = (
                CALLS.labels(short, method, outcome) for outcome in ("success", "refused", "failed")
            )
            meters[protocol.name, method] = MethodMeters(SECONDS.labels(short, method), *outcomes)
    return meters


UNKNOWN = CALLS.labels("unknown", "unknown", "refused")
"""Calls of methods that nobody here serves."""
