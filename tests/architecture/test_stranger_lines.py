"""Log lines at the doors name their caller: ``ha.daemon.log_limit`` bounds and cuts those."""

import ast
from collections.abc import Iterator
from pathlib import Path

from ha.daemon.log_limit import CALLER_FIELDS
from tests import ROOT

DOORS = (
    "ha/rpc", "ha/daemon/http", "ha/daemon/peeking.py", "ha/security/access_control.py",
    "journal/node/faces", "journal/node/lanes", "datanode/transfers/xceiver.py",
    "datanode/webhdfs", "namenode_sim/webhdfs", "namenode_sim/transfer/image_server.py",
)  # fmt: skip
"""Where strangers are talked to before, or while, it is known what they may do."""
LEVELS = {"info", "warning", "error", "exception", "critical"}
OF_NO_CALLER = {
    "rpc.server.calls_cancelled": "once, when the server stops",
    "rpc.thread_crashed": "an error in nnha; the thread ends with its connection",
    "rpc.client": "we are the caller",
    "listener.not_accepted": "there is no connection; a warning, once a rest",
    "door.full": "of all callers; at most once a minute for each limit",
    "journal.grpc_not_watched": "an error in nnha, of no caller; the log has twenty a minute",
    "journal.lane_not_accepted": "there is no connection; a warning, once a rest",
    "image.short": "our own disk's",
    "audit.refusals_not_written": "once a minute",
    "datanode.no_handshakes": "once, at the start",
}


def lines_without_caller(text: str) -> Iterator[str]:
    """Yield the events of a module's log calls that have no field which names a caller."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("log"), attr=level),
                args=[ast.Constant(str(event)), *_],
                keywords=fields,
            ) if level in LEVELS:
                named = {one.arg for one in fields}  # None: ``**fields``
                if named.isdisjoint({*CALLER_FIELDS, None}):
                    yield event


def modules() -> Iterator[Path]:
    for door in DOORS:
        path = ROOT / door
        assert path.exists(), door
        yield from (path.rglob("*.py") if path.is_dir() else [path])


def test_every_line_at_a_door_names_its_caller() -> None:
    found = {
        event: path.relative_to(ROOT)
        for path in modules()
        for event in lines_without_caller(path.read_text())
        if not any(event.startswith(known) for known in OF_NO_CALLER)
    }
    assert not found, "add peer=, host=, uid= or asked_by=, or say why in OF_NO_CALLER"


def test_a_line_without_a_caller_is_seen() -> None:
    offender = 'log.info("a.b", why="x")\nlog.warning("c.d", peer=1)\nlog.info("e.f", **who)\n'
    assert list(lines_without_caller(offender)) == ["a.b"]
