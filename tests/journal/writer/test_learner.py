"""A node that was wiped has no vote until a writer admits it.

See docs/reference/quorum-journal.md#learners.
"""

import shutil
from collections.abc import Awaitable, Callable

import pytest

from journal.errors import InvariantBroken, NotAdmitted, OutOfSync, QuorumLost, Rejected
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import Epoch, NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb
from tests.journal.writer import journal_cluster as journals

TIMEOUT = 5.0
Reborn = Callable[[journals.Nodes], Awaitable[None]]


def remote(nodes: journals.Nodes, i: int) -> RemoteNode:
    return RemoteNode(*nodes.addresses[i], JournalAddress(journals.JOURNAL, "ns1"))


async def version_copied(nodes: journals.Nodes) -> None:
    """Copy VERSION only, as blogs advise for a new disk."""
    shutil.rmtree(nodes.current(1).parent)
    nodes.current(1).mkdir(parents=True)
    shutil.copy(nodes.current(2) / "VERSION", nodes.current(1))
    await nodes.start(1)


async def folder_copied(nodes: journals.Nodes) -> None:
    """Copy the whole folder of a node that lacks what was acknowledged."""
    shutil.rmtree(nodes.current(1).parent)
    shutil.copytree(nodes.current(2).parent, nodes.current(1).parent)
    await nodes.start(1)


async def formatted_alone(nodes: journals.Nodes) -> None:
    """Format one node alone, as HDFS-16690 does by itself."""
    shutil.rmtree(nodes.current(1).parent)
    await nodes.start(1)
    node = remote(nodes, 1)
    await node.format(journals.NAMESPACE, force=False, timeout_seconds=TIMEOUT)
    await node.close()


async def formatted_by_force(nodes: journals.Nodes) -> None:
    await nodes.start(1)
    node = remote(nodes, 1)
    seen = Epoch((await node.status(TIMEOUT)).last_promised_epoch)
    await node.format(
        journals.NAMESPACE,
        force=True,
        timeout_seconds=TIMEOUT,
        seen_promised=seen,
        seen_namespace_id=journals.NAMESPACE.namespace_id,
    )
    await node.close()


WAYS = [version_copied, folder_copied, formatted_alone, formatted_by_force]


async def acknowledged_by_two(nodes: journals.Nodes) -> None:
    """1-3 finalized everywhere; 4-6 acknowledged by JN0 and JN1, the writer crashes."""
    writer = nodes.writer()
    await writer.become_writer()
    await journals.write_segment(writer, 1, 3, "a")
    await writer.settle(timeout_seconds=TIMEOUT)
    await nodes.stop(2)
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 3, journals.edits(4, 6, "a"))
    await writer.settle(timeout_seconds=TIMEOUT)
    await writer.close()


@pytest.mark.row("X3")
@pytest.mark.parametrize("reborn", WAYS)
async def test_x03_a_wiped_node_does_not_outvote_what_was_acknowledged(
    nodes: journals.Nodes, reborn: Reborn
) -> None:
    """4-6 are acknowledged on JN0 and JN1; JN1 is wiped, JN0 is down.

    Hadoop (2.7.3, executed) recovers from JN1 and JN2 without an
    error, and its readers see 1-3 only: 4-6 are lost.  Ours finds one voter of three.
    """
    await acknowledged_by_two(nodes)
    await nodes.stop(0, 1)
    await nodes.start(2)
    await reborn(nodes)
    writer = nodes.writer()
    with pytest.raises(QuorumLost) as lost:
        await writer.become_writer()
    await writer.close()
    assert isinstance(lost.value.failures[NodeName(nodes.name(1))], NotAdmitted)
    # JN0 has what JN1 forgot.  It takes two voters to go on, and nothing is lost.
    await nodes.start(0)
    assert (await nodes.recover())[1] == 6
    assert await nodes.read_all() == journals.edits(1, 6, "a")


@pytest.mark.parametrize("reborn", WAYS)
async def test_a_learner_tells_readers_nothing_and_a_person_everything(
    nodes: journals.Nodes, reborn: Reborn
) -> None:
    await acknowledged_by_two(nodes)
    await nodes.stop(1)
    await nodes.start(2)
    before = await _status(nodes, 2)
    await reborn(nodes)
    status = await _status(nodes, 1)
    assert status.is_learner
    assert status.incarnation not in ("", before.incarnation)
    assert not before.is_learner
    node = remote(nodes, 1)
    with pytest.raises(NotAdmitted):
        await node.manifest(TxId(1), in_progress=True, timeout_seconds=TIMEOUT)
    with pytest.raises(NotAdmitted):
        await node.journal_state(TIMEOUT)
    await node.close()
    # It stays one, whatever happens to its process.
    await nodes.stop(1)
    await nodes.start(1)
    again = await _status(nodes, 1)
    assert (again.is_learner, again.incarnation) == (True, status.incarnation)


async def _status(nodes: journals.Nodes, i: int) -> pb.JournalStatus:
    node = remote(nodes, i)
    try:
        return await node.status(TIMEOUT)
    finally:
        await node.close()


async def test_a_folder_that_was_only_moved_keeps_its_vote(nodes: journals.Nodes) -> None:
    await acknowledged_by_two(nodes)
    await nodes.stop(1)
    root = nodes.current(1).parent
    root.rename(root.with_name("aside"))
    root.with_name("aside").rename(root)
    await nodes.start(1)
    assert not (await _status(nodes, 1)).is_learner


async def test_a_learner_is_admitted_when_it_holds_what_the_voters_hold(
    nodes: journals.Nodes,
) -> None:
    writer = nodes.writer()
    epoch = (await writer.become_writer()).epoch
    await journals.write_segment(writer, 1, 3, "a")
    await writer.settle(timeout_seconds=TIMEOUT)
    await nodes.stop(1)
    await folder_copied(nodes)
    status, node, voter = await _status(nodes, 1), remote(nodes, 1), remote(nodes, 2)
    listed = await voter.manifest(TxId(1), in_progress=False, timeout_seconds=TIMEOUT)
    required = [
        Segment(TxId(s.first_txid), TxId(s.last_txid), finalized=True, digest=s.digest)
        for s in listed.segments
    ]

    async def admit(incarnation: str, committed: int) -> None:
        info = node.request_info(epoch, 1000 + len(asked), None)
        asked.append(committed)
        await node.admit(info, incarnation, required, TxId(committed), TIMEOUT)

    asked: list[int] = []
    refused: list[tuple[str, int, type[Rejected]]] = [
        ("f" * 32, 3, NotAdmitted),
        (status.incarnation, 4, OutOfSync),
    ]
    for incarnation, committed, refusal in refused:
        with pytest.raises(refusal):
            await admit(incarnation, committed)
        assert (await _status(nodes, 1)).is_learner
    await admit(status.incarnation, 3)
    await admit(status.incarnation, 3)  # a late twin of the answer's request
    await nodes.stop(1)
    await nodes.start(1)
    assert not (await _status(nodes, 1)).is_learner
    await writer.close()
    await node.close()
    await voter.close()
    await nodes.stop(0)
    assert (await nodes.recover())[1] == 3


async def test_an_imported_journal_is_founded_by_an_operators_word(nodes: journals.Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await journals.write_segment(writer, 1, 3, "a")
    await writer.settle(timeout_seconds=TIMEOUT)
    await writer.close()
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / "incarnation").unlink()  # as Hadoop leaves it
    await nodes.start()
    failing = nodes.writer()
    with pytest.raises(QuorumLost, match=r"none agreed; failed: .*no vote"):
        await failing.become_writer()
    await failing.close()
    for i in range(3):
        node = remote(nodes, i)
        await node.admit_founding((await node.status(TIMEOUT)).incarnation, TIMEOUT)
        await node.close()
    assert (await nodes.recover())[1] == 3


async def test_two_nodes_on_clones_of_one_disk_are_not_two_votes(nodes: journals.Nodes) -> None:
    """Recognise by its name a cloned block device, which has the same inodes."""
    await nodes.stop(1)
    one, other = (nodes.current(i) / "incarnation" for i in (1, 2))
    identity = other.read_text().split("id=")[1][:32]
    mine = one.read_text().split("id=")[1][:32]
    with one.open("r+") as file:  # in place: the inode stays
        text = file.read().replace(mine, identity)
        file.seek(0)
        file.write(text)
    await nodes.start(1)
    writer = nodes.writer()
    await nodes.stop(0)
    with pytest.raises(InvariantBroken, match="one and the same incarnation"):
        await writer.become_writer()
    await writer.close()
