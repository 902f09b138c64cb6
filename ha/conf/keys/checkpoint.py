"""The keys of the checkpoint service (``nnha checkpoint run``)."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, host_port, text

_G = Scope.GLOBAL

CHECKPOINT_HTTP = Key(
    "nnha.checkpoint.http-address",
    host_port(),
    "127.0.0.1:8121",
    _G,
    "/status, /metrics and /health of the checkpoint service",
)
CHECKPOINT_WORK = Key(
    "nnha.checkpoint.work-dir",
    text,
    "${hadoop.tmp.dir}/nnha-checkpoint",
    _G,
    "where images and edits are fetched to and merged; Spark's executors must see it too",
)
CHECKPOINT_RETRY_FIRST = Key(
    "nnha.checkpoint.retry.first",
    duration("s", zero=False),
    "10s",
    _G,
    "how long to wait after a failure; twice as long after each further one in a row",
)
CHECKPOINT_RETRY_MOST = Key(
    "nnha.checkpoint.retry.most", duration("s", zero=False), "10m", _G, "but never longer than this"
)
