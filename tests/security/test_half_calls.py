"""Half requests over gRPC: those of strangers cost nothing, and one user's no more than a share."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ha.security.caller import Role
from ha.security.tls_files import TlsFiles
from journal.node.faces.grpc_room import MOST_READ_OF_ONE, MOST_STREAMS_OF_ONE
from tests.ha.security.authority import Authority
from tests.journal.node.half_call import HalfCall
from tests.security.strangers import SECONDS, Daemon
from tests.security.test_certificates import node, said

MB = 1000 * 1000
CALLS = 100
PUSHED = 60 * MB
WINDOW = 64 * 1024
SERVICE = "/nnha.journal.JournalNode/"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def resident_bytes(daemon: Daemon) -> int:
    for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("it has ended")


@asynccontextmanager
async def half_calls(port: int, method: str, caller: TlsFiles) -> AsyncIterator[list[HalfCall]]:
    """Begin a hundred calls whose requests do not end, each of which sends all that it may."""
    async with AsyncExitStack() as stack:
        calls = [
            await stack.enter_async_context(
                await HalfCall.begun(
                    port, SERVICE + method, PUSHED + 1, secured=caller.client(Role.JOURNALNODE)
                )
            )
            for _ in range(CALLS)
        ]
        pushing = [asyncio.create_task(call.push(PUSHED)) for call in calls]
        try:
            yield calls
        finally:
            for task in pushing:
                task.cancel()
            await asyncio.gather(*pushing, return_exceptions=True)


async def pushed(calls: Sequence[HalfCall], count: int) -> None:
    """Wait until ``count`` calls have sent all that they have."""
    async with asyncio.timeout(SECONDS):
        while sum(call.sent >= PUSHED for call in calls) < count:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("method", ["NewEpoch", "Write", "Format"])
async def test_who_may_not_call_is_told_before_its_request_is_read(
    authority: Authority, tmp_path: Path, method: str
) -> None:
    stranger = TlsFiles(authority.issue(Role.DATANODE, "dn1"), 1)
    async with node(authority, tmp_path / "jn") as (process, rpc, _):
        before = resident_bytes(process)
        async with half_calls(rpc, method, stranger) as calls:
            async with asyncio.timeout(SECONDS):
                await asyncio.gather(*(call.closed.wait() for call in calls))
            assert max(call.sent for call in calls) <= WINDOW
            assert resident_bytes(process) - before < 60 * MB
        (line,) = await process.audited(1)
        assert (line["allowed"], line["action"]) == (False, method)


@pytest.mark.parametrize(
    ("method", "most"), [("NewEpoch", MOST_READ_OF_ONE), ("Write", MOST_STREAMS_OF_ONE)]
)
async def test_one_user_has_no_more_than_its_share(
    authority: Authority, tmp_path: Path, method: str, most: int
) -> None:
    """Check that a stolen NameNode's certificate keeps no other out."""
    thief = TlsFiles(authority.issue(Role.NAMENODE, "nn2"), 1)
    owner = TlsFiles(authority.issue(Role.NAMENODE, "nn1"), 1)
    async with node(authority, tmp_path / "jn") as (process, rpc, _):
        assert "PERMISSION_DENIED" not in await said(rpc, owner)
        before = resident_bytes(process)
        async with half_calls(rpc, method, thief) as calls:
            await pushed(calls, most)
            assert resident_bytes(process) - before < 300 * MB
            assert "this node has no journal" in await said(rpc, owner, "GetJournalState")
