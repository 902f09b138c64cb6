"""How long ZooKeeper takes to answer."""

from prometheus_client import Histogram

REQUEST_SECONDS = Histogram(
    "nnha_zk_request_duration_seconds",
    "From a request to ZooKeeper to its end, by what became of it",
    ["op", "result"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
