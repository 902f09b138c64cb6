"""What a JournalNode says of its process is what every other daemon says."""

from dataclasses import asdict, fields
from typing import cast

from ha.daemon.facts import AboutDaemon
from journal.cli.probe import JournalProbe
from journal.links.remote_node import RemoteNode
from journal.proto import journal_pb2 as pb

ABOUT = AboutDaemon(
    version="1",
    commit="abc",
    pid=7,
    started_at="2026-01-01T00:00:00.000Z",
    config_hash="0123",
    insecure=("rpc",),
    config_keys=("dfs.nameservices=0123abcd",),
)


class Answering:
    """A node that answers at once."""

    async def status(self, _: float) -> pb.JournalStatus:
        return pb.JournalStatus(daemon=pb.Daemon(**asdict(ABOUT)))


async def test_every_fact_of_a_daemon_comes_through_the_call() -> None:
    assert {field.name for field in fields(AboutDaemon)} == set(pb.Daemon.DESCRIPTOR.fields_by_name)
    seen = await JournalProbe(cast("RemoteNode", Answering())).status(timeout_seconds=1)
    daemon = asdict(ABOUT)
    daemon |= {name: list(one) for name, one in daemon.items() if isinstance(one, tuple)}
    assert seen["daemon"] == daemon
