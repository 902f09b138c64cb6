"""Hadoop's own QuorumJournalManager on our JournalNodes: it writes, recovers, fences and reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from py4j.protocol import Py4JJavaError

from journal.model import LAYOUT_VERSION, TxId
from journal.proto import hadoop_qjournal_pb2 as hp
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.ops import Delete
from tests.interop.hadoop_server import Hadoop
from tests.interop.java_journal import JavaWriter, OurNodes, edits, our_nodes, paths
from tests.journal.node.process import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[OurNodes]:
    """Three nodes without a journal."""
    with our_nodes(tmp_path / "nodes") as running:
        yield running


@pytest.fixture
def java(hadoop: Hadoop, nodes: OurNodes, tmp_path: Path) -> Iterator["Writers"]:
    writers = Writers(hadoop, nodes, tmp_path)
    yield writers
    for writer in writers.made:
        writer.close()


class Writers:
    """Java writers of one journal."""

    def __init__(self, hadoop: Hadoop, nodes: OurNodes, folder: Path) -> None:
        self._hadoop, self._nodes, self._folder = hadoop, nodes, folder
        self.made: list[JavaWriter] = []

    def __call__(self) -> JavaWriter:
        writer = JavaWriter(self._hadoop, self._nodes.uri, self._folder)
        self.made.append(writer)
        return writer


def test_the_messages_are_hadoops(hadoop: Hadoop) -> None:
    """Field by field: name, number, label, type and default, as in Hadoop's own descriptors."""
    protocol = hadoop.hadoop.hdfs.qjournal.protocol
    server = hadoop.hadoop.hdfs.protocol.proto.HdfsServerProtos
    theirs: dict[str, dict[str, object]] = {}
    for java in (
        protocol.QJournalProtocolProtos,
        protocol.InterQJournalProtocolProtos,
        server,
    ):
        file = descriptor_pb2.FileDescriptorProto.FromString(
            bytes(java.getDescriptor().toProto().toByteArray())
        )
        theirs |= {message.name: shape(message) for message in file.message_type}
    ours = descriptor_pb2.FileDescriptorProto()
    hp.DESCRIPTOR.CopyToProto(ours)
    for message in ours.message_type:
        known = theirs[message.name]
        if message.name == "NamespaceInfoProto":
            known = {name: field for name, field in known.items() if name != "state"}
        assert shape(message) == known, message.name
    missing = {name for name in theirs if name.endswith(("RequestProto", "ResponseProto"))} - {
        message.name for message in ours.message_type
    }
    assert missing == {"VersionRequestProto", "VersionResponseProto"} & set(theirs)


def shape(message: descriptor_pb2.DescriptorProto) -> dict[str, object]:
    """Return what must agree of a message."""
    return {
        field.name: (
            field.number,
            field.label,
            field.type,
            field.type_name.rpartition(".")[2],
            field.default_value,
        )
        for field in message.field
    }


def test_java_formats_writes_and_rolls_and_both_readers_read_it(
    java: "Writers", nodes: OurNodes
) -> None:
    writer = java()
    assert not writer.manager.hasSomeData()
    writer.format()
    assert writer.manager.hasSomeData()
    writer.become_writer()
    writer.write_segment(1, 3, "a")
    stream = writer.start(4)
    writer.write(stream, 4, 5, "a")
    writer.write(stream, 6, 9, "a")
    assert java().read(1, in_progress=True) == paths(1, 9, "a")
    stream.close()
    writer.manager.finalizeLogSegment(4, 9)
    assert writer.manager.getJournalCTime() == 0
    assert java().read(1) == paths(1, 9, "a")
    assert nodes.run(nodes.nodes.read_all()) == edits(1, 9, "a")


def test_java_recovers_what_java_left(java: "Writers", nodes: OurNodes) -> None:
    first = java()
    first.format()
    first.become_writer()
    first.write_segment(1, 3, "a")
    first.write(first.start(4), 4, 6, "a")
    second = java()
    second.become_writer()
    nodes.nodes.ensure_recovered(4, 6)
    second.write_segment(7, 8, "b")
    assert java().read(1) == paths(1, 6, "a") + paths(7, 8, "b")


def test_two_java_writers_fence_each_other(java: "Writers") -> None:
    first, second = java(), java()
    first.format()
    first.become_writer()
    stream = first.start(1)
    first.write(stream, 1, 2, "a")
    second.become_writer()
    with pytest.raises(Py4JJavaError, match="less than the last promised epoch 2"):
        first.write(stream, 3, 3, "a")
    second.write(second.start(3), 3, 4, "b")
    third = java()
    third.become_writer()
    assert third.read(1) == [*paths(1, 2, "a"), *paths(3, 4, "b")]


def test_java_goes_on_where_our_writer_stopped_and_back(java: "Writers", nodes: OurNodes) -> None:
    async def ours(first: int, last: int, tag: str, *, finalize: bool) -> int:
        writer = nodes.nodes.writer()
        won = await writer.become_writer()
        await writer.start_segment(TxId(first))
        await writer.write(TxId(first), last - first + 1, edits(first, last, tag))
        if finalize:
            await writer.finalize_segment(TxId(last))
        await writer.settle(timeout_seconds=5)
        await writer.close()
        return won.last_txid

    java().format()
    assert nodes.run(ours(1, 3, "ours", finalize=True)) == 0
    assert java().read(1) == paths(1, 3, "ours")
    assert nodes.run(ours(4, 6, "ours", finalize=False)) == 3
    assert java().read(1, in_progress=True) == paths(1, 6, "ours")
    writer = java()
    writer.become_writer()
    nodes.nodes.ensure_recovered(4, 6)
    writer.write(writer.start(7), 7, 9, "java")
    assert nodes.run(ours(10, 11, "ours", finalize=True)) == 9
    everything = edits(1, 6, "ours") + edits(7, 9, "java") + edits(10, 11, "ours")
    assert nodes.run(nodes.nodes.read_all()) == everything


def test_java_writes_with_a_node_down_which_returns_at_the_next_roll(
    java: "Writers", nodes: OurNodes
) -> None:
    writer = java()
    writer.format()
    writer.become_writer()
    stream = writer.start(1)
    writer.write(stream, 1, 2, "a")
    nodes.stop(2)
    writer.write(stream, 3, 4, "a")
    nodes.start(2)
    stream.close()
    writer.manager.finalizeLogSegment(1, 4)
    writer.write_segment(5, 6, "a")
    # Java's writer waits for a majority, and the third node closes the segment a moment later.
    nodes.run(until(lambda: (5, 6) in nodes.nodes.finalized(2), "the node takes part again"))
    assert java().read(1) == paths(1, 6, "a")


def test_equal_length_divergence_is_mended_for_java_writers_too(
    java: "Writers", nodes: OurNodes
) -> None:
    """Use Hadoop's own writer; on Hadoop's own nodes a reader may then get A's 4-6."""
    first = java()
    first.format()
    first.become_writer()
    first.write_segment(1, 3, "a")
    stream = first.start(4)
    nodes.stop(1, 2)
    with pytest.raises(Py4JJavaError):
        first.write(stream, 4, 6, "a")
    nodes.stop(0)
    nodes.start(1, 2)
    second = java()
    second.become_writer()
    second.write(second.start(4), 4, 6, "b")
    nodes.start(0)
    third = java()
    third.become_writer()
    for stopped in range(3):
        nodes.stop(stopped)
        assert java().read(1) == paths(1, 3, "a") + paths(4, 6, "b")
        nodes.start(stopped)
    nodes.stop(0, 1, 2)  # or a file may be renamed between its listing and its reading
    for i in range(3):
        for final in nodes.nodes.current(i).glob(f"edits_{4:019d}-*"):
            data = final.read_bytes()
            found = [op for _, op in decode_all(data, LAYOUT_VERSION, start=8)]
            assert [op.path for op in found if isinstance(op, Delete)] == paths(4, 6, "b")
