"""saveNamespace before clients: its callers, and safe mode, which stays until it is done."""

import asyncio

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from ha.rpc.protocol import Call
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.blocks.safemode import Off, Pending, SafeMode
from namenode_sim.checkpoint.on_request import NotSaved
from namenode_sim.datanode_protocol.safe_mode import SafeModeWatch
from tests.namenode_sim.carried_out import carried_out
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, prepared
from tests.namenode_sim.client_protocol.test_safe_mode import ENTER, LEAVE, switch


class Saving:
    """Remembers what it is asked for, and waits until it may answer."""

    def __init__(self, answer: bool | Exception = True) -> None:
        self.asked: list[tuple[int, int]] = []
        self.answer = answer
        self.go = asyncio.Event()

    async def save(self, window_seconds: int, most_edits: int) -> bool:
        self.asked.append((window_seconds, most_edits))
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def saved(served: Served, user: str = "hdfs", **fields: int) -> bool:
    method = served.face.protocol().methods["saveNamespace"]
    call = Call("", "saveNamespace", b"client-of-16byte", 7, 0, user, None, "127.0.0.1")
    answer = await carried_out(method, call, calls.SaveNamespaceRequestProto(**fields))
    assert isinstance(answer, calls.SaveNamespaceResponseProto)
    return answer.saved


@pytest.mark.parametrize("answer", [True, False])
async def test_a_standby_is_asked_like_an_active(answer: bool) -> None:
    served, saving = await prepared(), Saving(answer)
    saving.go.set()
    served.face.save = saving.save
    await switch(served, ENTER)
    served.gate.admitted.clear()
    assert await saved(served, timeWindow=3600, txGap=5) is answer
    assert saving.asked == [(3600, 5)]
    assert not served.gate.admitted


async def test_only_the_superuser_saves_and_only_in_safe_mode() -> None:
    served, saving = await prepared(), Saving()
    served.face.save = saving.save
    with pytest.raises(RemoteFault, match="Safe mode should be turned ON") as refused:
        await saved(served)
    assert refused.value.java_class == IO_EXCEPTION
    await switch(served, ENTER)
    with pytest.raises(RemoteFault) as refused:
        await saved(served, user="alice")
    assert refused.value.java_class == ACCESS_CONTROL
    assert not saving.asked


async def test_what_failed_is_said_and_can_be_tried_again() -> None:
    served, saving = await prepared(), Saving(NotSaved("the disks are full"))
    saving.go.set()
    served.face.save = saving.save
    await switch(served, ENTER)
    with pytest.raises(RemoteFault, match="the disks are full") as refused:
        await saved(served)
    assert refused.value.java_class == IO_EXCEPTION
    saving.answer = True
    assert await saved(served)
    assert not await switch(served, LEAVE)


async def test_safe_mode_is_left_behind_the_image() -> None:
    """An operator's leave waits; the start's safe mode does not end by itself either."""
    served, saving = await prepared(), Saving()
    served.face.save = saving.save
    methods = served.face.protocol().methods
    watch = SafeModeWatch(served.cluster, lambda: True, lambda: 1e9)
    served.cluster.set_safe_mode(SafeMode(Pending()))
    image, leave = (
        Call("", name, b"client-of-16byte", 7, 0, "hdfs", None, "127.0.0.1")
        for name in ("saveNamespace", "setSafeMode")
    )
    first = asyncio.create_task(
        carried_out(methods["saveNamespace"], image, calls.SaveNamespaceRequestProto())
    )
    while not saving.asked:
        await asyncio.sleep(0)
    leaving = asyncio.create_task(
        carried_out(methods["setSafeMode"], leave, calls.SetSafeModeRequestProto(action=LEAVE))
    )
    for _ in range(10):
        await asyncio.sleep(0)
    watch.look()
    watch.look()
    assert served.cluster.safe_mode == SafeMode(Pending())
    assert not leaving.done()
    saving.go.set()
    await first
    await leaving
    assert served.cluster.safe_mode == SafeMode(Off())
    served.cluster.set_safe_mode(SafeMode(Pending()))
    watch.look()
    assert served.cluster.safe_mode != SafeMode(Pending())
