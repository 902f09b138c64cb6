"""Copies that a NameNode commands, whole and damaged."""

from pathlib import Path

import pytest

from hadoop.blocks import Block
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import datanode_types_pb2 as types
from hadoop.wire.block_messages import plain
from hadoop.wire.connection import PeerLost
from tests.datanode import name_nodes
from tests.datanode.block_client import Place, Writing, begin, read, write_whole
from tests.datanode.name_nodes import NameNode
from tests.datanode.stores import POOL, block

DATA = bytes(range(251)) * 40


async def test_a_copy_on_command(tmp_path: Path, active: NameNode, standby: NameNode) -> None:
    async with (
        name_nodes.data_node(tmp_path / "a", active) as source,
        name_nodes.data_node(tmp_path / "b", standby) as copied,
    ):
        await write_whole([name_nodes.place(source)], block(), DATA)
        active.commands = [transfer([block(5), block()], name_nodes.place(copied))]
        await name_nodes.seen(
            lambda: name_nodes.told(standby) == [(block().block_id, name_nodes.RECEIVED)]
        )
        assert await read(name_nodes.place(copied), block(), 0, len(DATA)) == DATA
        await name_nodes.seen(lambda: active.errors != [])
        assert active.errors == [f"Can't send invalid block {block(5)}"]


async def test_who_gets_a_damaged_copy_tells_of_its_source(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    async with (
        name_nodes.name_node() as theirs,
        name_nodes.data_node(tmp_path / "a", active) as source,
        name_nodes.data_node(tmp_path / "b", theirs, standby) as first,
        name_nodes.data_node(tmp_path / "c", theirs) as second,
    ):
        await write_whole([name_nodes.place(source)], block(), DATA)
        damage(tmp_path / "a")
        active.commands = [transfer([block()], name_nodes.place(first), name_nodes.place(second))]
        await name_nodes.seen(lambda: theirs.damaged != [])
        await name_nodes.rounds(theirs)
        assert theirs.damaged == [block().block_id]
        assert theirs.holders == [source.status()["uuid"]]
        assert (first.status()["replicas"], second.status()["replicas"]) == (0, 0)
        # What has become of another's replica since is not known in a later term.
        await name_nodes.seen(lambda: standby.damage_calls == 1)
        standby.state = name_nodes.ACTIVE
        await name_nodes.rounds(standby)
        assert standby.damaged == []


@pytest.mark.parametrize("sender", ["a client", "a DataNode in between"])
async def test_what_others_damage_is_no_fault_of_the_source(
    tmp_path: Path, active: NameNode, sender: str
) -> None:
    source = Place(1) if sender == "a client" else None
    client = "client" if sender == "a client" else ""
    async with name_nodes.data_node(tmp_path, active) as node:
        writing = await begin([name_nodes.place(node)], block(), client=client, source=source)
        await writing.send(DATA[:1000], bad_sum=True)
        with pytest.raises(PeerLost):
            await all_answers(writing)
        await name_nodes.rounds(active)
        assert active.damaged == []


async def all_answers(writing: Writing) -> None:
    while True:
        await writing.ack()


def damage(folder: Path) -> None:
    (path,) = (one for one in folder.rglob("blk_*") if one.suffix != ".meta")
    data = bytearray(path.read_bytes())
    data[5000] ^= 4
    path.write_bytes(data)


def transfer(blocks: list[Block], *to: Place) -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.BlockCommand,
        blkCmd=pb.BlockCommandProto(
            action=pb.BlockCommandProto.TRANSFER,
            blockPoolId=POOL.pool,
            blocks=[plain(one, len(DATA)) for one in blocks],
            targets=[types.DatanodeInfosProto(datanodes=[one.info for one in to]) for _ in blocks],
        ),
    )
