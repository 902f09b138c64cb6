"""Hadoop's own NameNode writes the audit lines of which ours are held to be the same."""

import re
from collections.abc import Iterator
from pathlib import Path

from deploy.local.cluster.processes import wait_until
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from hadoop.proto import client_namenode_pb2 as calls
from tests.ha.rpc.blocking_client import BlockingClient
from tests.interop.hadoop_server import Hadoop
from tests.namenode_sim.process.audit_calls import CALLS, GOLDEN, Asked, shown

SECONDS = 30.0
_LINE = re.compile(rb"audit - (allowed=[^\n]*)\n")


def ask(port: int, number: int, asked: Asked, superuser: str) -> None:
    said = PREAMBLE + encode_context(bytes(16), CLIENT_PROTOCOL, asked.user or superuser, None)
    key = CallKey(bytes([number + 1]) * 16, number, 0)
    call = encode_call(
        key, CLIENT_PROTOCOL, asked.method, asked.request.SerializeToString(), asked.context
    )
    with BlockingClient(port, said) as client:
        client.ask(call)


def answered(port: int, log: Path, superuser: str) -> Iterator[list[str]]:
    """Yield the lines of each call; a call of a known line behind each shows that all are there."""
    marker = Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/marker"))
    for number, asked in enumerate(CALLS):
        before = log.stat().st_size
        ask(port, number, asked, superuser)
        ask(port, number, marker, superuser)

        def new(start: int = before) -> list[str]:
            data = log.read_bytes()[start:]
            return [line.decode() for line in _LINE.findall(data)]

        lines = wait_until(
            lambda new=new: new() if any("/marker" in one for one in new()) else None,  # type: ignore[misc]
            what=f"no line of {asked.method}", deadline_seconds=SECONDS,
        )  # fmt: skip
        yield [line for line in lines if "src=/marker" not in line]


def test_hadoop_writes_the_golden_lines(hadoop: Hadoop, tmp_path: Path) -> None:
    settings = {"hadoop.caller.context.enabled": "true"}
    with hadoop.cluster(tmp_path, data_nodes=1, settings=settings) as cluster:
        port, log = cluster.getNameNodePort(), hadoop.folder / "hadoop.log"
        superuser = hadoop.gateway.jvm.java.lang.System.getProperty("user.name")
        found = [
            shown(asked, lines, superuser)
            for asked, lines in zip(CALLS, answered(port, log, superuser), strict=True)
        ]
    assert "".join(found) == GOLDEN.read_text()
