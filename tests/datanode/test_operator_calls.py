"""What operators ask of a running DataNode: reports, evictions, changes, and its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from datanode import model
from datanode.namenodes.actor import Rhythm
from datanode.process.node import DataNode
from datanode.process.operator_calls import OperatorCalls
from datanode.process.settings import LIVE_KEYS, read_settings
from datanode.replicas.restart_marks import leave_mark
from datanode.replicas.store import Store
from ha.conf.configuration import Configuration, load_configuration
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from ha.rpc.protocol import Call
from ha.service.reconfiguration import Reconfiguration, check_is
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.connection import PeerLost
from tests.datanode import name_nodes
from tests.datanode.block_client import STAGE, Node, begin, places, read, write_whole
from tests.datanode.name_nodes import NameNode, data_node, place, rounds, seen, started, told
from tests.datanode.stores import begun, block, store, volume

DATA = bytes(range(256)) * 8
RESTART = pb.Status.OOB_RESTART
OK = pb.Status.SUCCESS
NEVER = 3600.0


async def asked(node: DataNode, request: Message, user: str = "hdfs") -> Any:  # noqa: ANN401
    """Return the answer to an operator's call, which its request's type names."""
    changes = Reconfiguration(Configuration({}, {}), (), print)
    methods = OperatorCalls(node, changes, check_is("hdfs")).methods()
    (name,) = [name for name, one in methods.items() if one.request is type(request)]
    call = Call("protocol", name, b"client", 1, 0, user, None, "127.0.0.1")
    return await methods[name].handle(call, request)


def report(address: str = "", *, incremental: bool = False) -> Message:
    return client.TriggerBlockReportRequestProto(incremental=incremental, nnAddress=address)


def shutdown(*, for_upgrade: bool) -> Message:
    return client.ShutdownDatanodeRequestProto(forUpgrade=for_upgrade)


async def test_what_it_is(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        found = await asked(node, client.GetDatanodeInfoRequestProto(), user="eve")
        assert found.localInfo.softwareVersion == "3.5.0-nnha"
        assert found.localInfo.uptime == int(node.uptime_seconds())


@pytest.mark.parametrize(("named", "reporting"), [("", [2, 2]), ("the standby", [1, 2])])
async def test_a_full_report_goes_to_all_or_to_one(
    tmp_path: Path, active: NameNode, standby: NameNode, named: str, reporting: list[int]
) -> None:
    both = (active, standby)
    async with data_node(tmp_path, *both) as node:
        for one in both:
            one.lease = 7
        await seen(lambda: [len(one.reports) for one in both] == [1, 1])
        await asked(node, report(f"127.0.0.1:{standby.port}" if named else ""))
        for one, number in zip(both, reporting, strict=True):
            await rounds(one)
            asking = one.heartbeats[-1].requestFullBlockReportLease
            assert asking == (number == 2)


async def test_an_incremental_report_does_not_wait_for_the_heartbeat(
    tmp_path: Path, active: NameNode
) -> None:
    chosen = replace(name_nodes.settings([tmp_path], [active]), rhythm=Rhythm(NEVER))
    async with started(chosen, active) as node:
        await write_whole([place(node)], block(1), DATA)
        await seen(lambda: (block(1).block_id, name_nodes.RECEIVED) in told(active))
        await begin([place(node)], block())
        await asked(node, report(incremental=True))
        await seen(lambda: (block().block_id, name_nodes.RECEIVING) in told(active))
        assert len(active.heartbeats) == 1
        assert active.reports == []


async def test_writers_are_evicted_and_readers_are_not(tmp_path: Path, active: NameNode) -> None:
    async with data_node(tmp_path, active) as node:
        await write_whole([place(node)], block(1), DATA)
        writing = await begin([place(node)], block())
        await writing.write(DATA)
        await asked(node, client.EvictWritersRequestProto())
        with pytest.raises(PeerLost):
            await writing.ack()
        assert await read(place(node), block(), 0, len(DATA)) == DATA
        again = await begin(
            [place(node)], block(), stage=STAGE.PIPELINE_SETUP_STREAMING_RECOVERY, stamp=1002,
            length=len(DATA),
        )  # fmt: skip
        assert again.set_up.status == OK
        await again.close()
        await asked(node, client.EvictWritersRequestProto())


async def ended(node: DataNode, task: "asyncio.Task[None]") -> None:
    await asyncio.wait_for(task, 30)
    assert node.shut_down(for_upgrade=False) is False


@pytest.mark.parametrize("for_upgrade", [True, False])
async def test_a_write_outlives_a_restart_for_an_upgrade(
    tmp_path: Path, active: NameNode, *, for_upgrade: bool
) -> None:
    chosen = name_nodes.settings([tmp_path], [active])
    node, stop = DataNode(chosen), asyncio.Event()
    task = asyncio.create_task(node.run(stop))
    await seen(lambda: len(active.heartbeats) > 0)
    writing = await begin([place(node)], block())
    await writing.write(DATA)
    await asked(node, shutdown(for_upgrade=for_upgrade))
    with pytest.raises(RemoteFault, match="Shutdown already in progress") as refused:
        await asked(node, shutdown(for_upgrade=for_upgrade))
    assert refused.value.java_class == IO_EXCEPTION
    if for_upgrade:
        heard = await writing.ack()
        assert (heard.seqno, list(heard.reply), list(heard.flag)) == (-2, [RESTART], [RESTART])
    with pytest.raises(PeerLost):
        await writing.ack()
    await ended(node, task)
    async with data_node(tmp_path, active) as node:
        again = await begin(
            [place(node)], block(), stage=STAGE.PIPELINE_SETUP_STREAMING_RECOVERY, stamp=1002,
            length=len(DATA),
        )  # fmt: skip
        if not for_upgrade:
            assert "is not being written" in again.set_up.message
            return
        assert again.set_up.status == OK
        await again.write(DATA)
        await again.close()
        assert await read(place(node), block(stamp=1002), 0, 2 * len(DATA)) == 2 * DATA
        assert not list(tmp_path.rglob("*.restart"))


async def test_a_restart_is_announced_by_the_datanodes_before(nodes: Sequence[Node]) -> None:
    writing = await begin(places(list(nodes)), block())
    await writing.write(DATA)
    await nodes[2].server.announce_restart()
    await writing.send(DATA[:700])
    relayed = [await writing.ack() for _ in range(2)]
    assert [one.seqno for one in relayed] == [-2, 1]
    assert [list(one.reply) for one in relayed] == [[OK, OK, RESTART], [OK, OK, OK]]
    writing.peer.abort()


async def test_only_clients_that_write_hear_of_a_restart(nodes: Sequence[Node]) -> None:
    """A copy has no client, and a set-up that is not answered is no write yet."""
    copy = await begin(places([nodes[0]]), block(), client="", size=len(DATA))
    await copy.send(DATA)
    await seen(lambda: len(nodes[0].store) == 1)
    await nodes[0].server.announce_restart()
    await copy.end()
    await seen(lambda: isinstance(nodes[0].store.find(block()), model.Finalized))


MARKS = {
    "valid": ("{later} 700", 700),
    "too late": ("1000 700", None),
    "Hadoop's": ("{later}", None),
    "of more than is here": ("{later} 99999", None),
    "no numbers": ("x y", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("text", "acked"), MARKS.values(), ids=MARKS)
async def test_a_mark_counts_once_and_for_a_while(
    tmp_path: Path, text: str, acked: int | None
) -> None:
    kept = await store(volume(tmp_path))
    replica = await begun(kept, block(), DATA, acked=700)
    assert isinstance(replica, model.BeingWritten)
    leave_mark(kept.volumes[replica.storage].paths(replica), replica)
    (mark,) = tmp_path.rglob("*.restart")
    until, written = mark.read_text().split()
    assert written == "700"
    mark.write_text(text.format(later=until))
    await kept.volumes.close()
    for attempt in range(2):
        kept = await store(volume(tmp_path))
        found = kept.find(block())
        assert not list(tmp_path.rglob("*.restart"))
        if acked is not None and attempt == 0:
            assert found == model.BeingWritten(block(), replica.storage, acked, acked)
            await readable(kept, DATA[:acked])
        else:
            assert isinstance(found, model.WaitingForRecovery)
            assert found.length == (len(DATA) if acked is None else acked)
        await kept.volumes.close()


async def readable(kept: Store, data: bytes) -> None:
    files = await kept.open(kept.find(block()))
    assert files.checked(0, len(data), "it") == data
    files.close()


FOR_SUPERUSERS = (
    report(),
    client.EvictWritersRequestProto(),
    shutdown(for_upgrade=True),
    shutdown(for_upgrade=False),
)


@pytest.mark.parametrize("request_", FOR_SUPERUSERS, ids=lambda one: type(one).__name__)
async def test_others_than_the_superuser_are_refused(
    tmp_path: Path, active: NameNode, request_: Message
) -> None:
    async with data_node(tmp_path, active) as node:
        active.lease = 7
        await seen(lambda: len(active.reports) == 1)
        writing = await begin([place(node)], block())
        with pytest.raises(RemoteFault) as refused:
            await asked(node, request_, user="eve")
        assert refused.value.java_class == ACCESS_CONTROL
        await rounds(active)
        assert not active.heartbeats[-1].requestFullBlockReportLease
        await writing.write(DATA)
        await writing.close()


def settings_of(folder: Path, *overrides: str) -> Configuration:
    (folder / "core-site.xml").write_text("<configuration/>")
    needed = (
        "dfs.nameservices=ns1", "dfs.ha.namenodes.ns1=nn1", "hadoop.tmp.dir=/data",
        "dfs.namenode.rpc-address.ns1.nn1=127.0.0.1:1",
    )  # fmt: skip
    return load_configuration(folder, [*needed, *overrides], environment={})


@pytest.mark.parametrize("key", LIVE_KEYS, ids=lambda key: key.name)
def test_each_live_key_reaches_the_settings(tmp_path: Path, key: Any) -> None:  # noqa: ANN401
    usual = read_settings(settings_of(tmp_path))
    changed = read_settings(settings_of(tmp_path, f"{key.name}=17"))
    assert changed != usual
    same = replace(
        changed, rhythm=usual.rhythm, limits=usual.limits, tolerated=usual.tolerated
    )  # fmt: skip
    assert same == usual


async def test_a_shorter_rhythm_counts_at_once(tmp_path: Path, active: NameNode) -> None:
    chosen = replace(name_nodes.settings([tmp_path], [active]), rhythm=Rhythm(NEVER, NEVER))
    async with started(chosen, active) as node:
        node.use(replace(chosen, rhythm=Rhythm(0.01, NEVER)))
        await rounds(active, 3)
        active.lease = 7
        await seen(lambda: len(active.reports) == 1)
        await rounds(active)
        assert not active.heartbeats[-1].requestFullBlockReportLease
        node.use(replace(chosen, rhythm=Rhythm(0.01, 0.01)))
        await seen(lambda: active.heartbeats[-1].requestFullBlockReportLease)


async def test_other_limits_count_for_the_next_connection(tmp_path: Path, active: NameNode) -> None:
    chosen = name_nodes.settings([tmp_path], [active])
    async with started(chosen, active) as node:
        await begin([place(node)], block())
        node.use(replace(chosen, limits=replace(chosen.limits, max_connections=1)))
        with pytest.raises(PeerLost):
            await begin([place(node)], block(1))
        node.use(chosen)
        await begin([place(node)], block(1))
