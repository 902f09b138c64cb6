"""A NameNode in memory with a snapshot, and what a client reads in it."""

from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, prepared


async def snapshotted(settings: Settings | None = None) -> Served:
    """/d (with e/ and g) has a snapshot s0; then g is renamed, e deleted, f2 created."""
    served = await prepared(settings)
    await served.take_snapshot("/d", "s0")
    await served.call("rename2", src="/d/g", dst="/h", overwriteDest=False)
    await served.call("delete", src="/d/e", recursive=True)
    await served.touch("/d/f2")
    return served


async def names(served: Served, src: str, after: bytes = b"") -> list[str]:
    answer = await served.call("getListing", src=src, startAfter=after, needLocation=False)
    assert isinstance(answer, calls.GetListingResponseProto)
    return [entry.path.decode() for entry in answer.dirList.partialListing]
