"""Safe mode before clients: what is refused, in which words, and who may switch it."""

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION, RETRIABLE, SAFE_MODE_EXCEPTION
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import SafeModeActionProto
from namenode_sim.blocks.safemode import Extension, Off, Pending, SafeMode
from namenode_sim.client_protocol.safe_mode import WORDS
from namenode_sim.client_protocol.table import WRITES
from tests.log_lines import captured
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, prepared, serve
from tests.namenode_sim.client_protocol.recovering_datanodes import without_replicas

LEAVE, ENTER = SafeModeActionProto.SAFEMODE_LEAVE, SafeModeActionProto.SAFEMODE_ENTER
GET, FORCE_EXIT = SafeModeActionProto.SAFEMODE_GET, SafeModeActionProto.SAFEMODE_FORCE_EXIT

MODES = {
    "blocks are not reported yet": (SafeMode(Pending()), RETRIABLE),
    "the extension runs": (SafeMode(Extension(0.0)), RETRIABLE),
    "an operator holds it": (SafeMode(Off(), by_hand=True), SAFE_MODE_EXCEPTION),
    "both": (SafeMode(Pending(), by_hand=True), SAFE_MODE_EXCEPTION),
    "no room on the disk": (SafeMode(Off(), low_resources=True), SAFE_MODE_EXCEPTION),
}


async def switch(served: Served, action: int, user: str = "hdfs", **more: object) -> bool:
    answer = await served.call("setSafeMode", user=user, action=action, **more)  # type: ignore[arg-type]
    assert isinstance(answer, calls.SetSafeModeResponseProto)
    return answer.result


@pytest.mark.row("B13")
@pytest.mark.parametrize("mode", MODES)
async def test_b13_edits_are_refused_and_reads_answered(mode: str) -> None:
    served = await prepared()
    held, java_class = MODES[mode]
    served.face.cluster.set_safe_mode(held)
    before = len(served.log.frames)
    with pytest.raises(RemoteFault) as refused:
        await served.mkdirs("/new")
    assert refused.value.java_class == java_class
    words = "Cannot create directory /new. Name node is in safe mode.\n"
    assert words in refused.value.message
    assert refused.value.message.endswith("NamenodeHostName:localhost")
    if java_class == RETRIABLE:
        assert refused.value.message.startswith(f"{SAFE_MODE_EXCEPTION}: ")
    with pytest.raises(RemoteFault, match="Cannot renew lease for writer"):
        await served.call("renewLease", clientName="writer")
    with pytest.raises(RemoteFault, match="Log not rolled"):
        await served.call("rollEdits")
    assert await served.face.release_expired_leases() == 0
    assert await served.status("/d/e") is not None
    assert len(served.log.frames) == before


@pytest.mark.parametrize("lost", [{0}, {1}, {0, 1}], ids=["the first", "the last", "both"])
@pytest.mark.parametrize("mode", MODES)
async def test_blocks_without_a_place_are_not_told_as_lost(mode: str, lost: set[int]) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    blocks = await datanodes_in_memory.written(served, "/f", 10, 10)
    held, java_class = MODES[mode]
    served.cluster.set_safe_mode(held)
    assert [
        len(block.locs) for block in (await datanodes_in_memory.locations(served, "/f")).blocks
    ] == [3, 3]
    for number in lost:
        without_replicas(served, blocks[number], "d1", "d2", "d3")
    with pytest.raises(RemoteFault, match=r"Zero blocklocations for /f\. Name node is") as refused:
        await datanodes_in_memory.locations(served, "/f")
    assert refused.value.java_class == java_class
    served.cluster.set_safe_mode(SafeMode(Off()))
    found = [
        bool(block.locs) for block in (await datanodes_in_memory.locations(served, "/f")).blocks
    ]
    assert found == [number not in lost for number in range(2)]


async def test_a_report_of_damage_is_admitted_in_safe_mode() -> None:
    served = await prepared()
    served.cluster.set_safe_mode(SafeMode(Pending()))
    assert await served.call("reportBadBlocks") == calls.ReportBadBlocksResponseProto()


async def test_a_repeated_call_gets_the_first_ones_answer_in_safe_mode() -> None:
    served = await prepared()
    await served.call("delete", src="/d", recursive=True, call_id=500)
    served.face.cluster.set_safe_mode(SafeMode(Pending()))
    answer = await served.call("delete", src="/d", recursive=True, call_id=500)
    assert isinstance(answer, calls.DeleteResponseProto)
    assert answer.result


@pytest.mark.row("B13")
async def test_b13_an_operator_enters_and_leaves() -> None:
    served = await prepared()
    assert not await switch(served, GET, user="alice")
    assert await switch(served, ENTER)
    assert await switch(served, GET, user="alice")
    with pytest.raises(RemoteFault, match="It was turned on manually"):
        await served.mkdirs("/new")
    assert not await switch(served, LEAVE)
    assert await served.mkdirs("/new")


@pytest.mark.parametrize("action", [ENTER, LEAVE, FORCE_EXIT])
async def test_only_the_superuser_switches_it(action: int) -> None:
    served = await prepared()
    with pytest.raises(RemoteFault) as refused:
        await switch(served, action, user="alice")
    assert refused.value.java_class == ACCESS_CONTROL


async def test_all_are_asked_but_who_minds_asks_the_active() -> None:
    served = await prepared()
    await switch(served, GET)
    assert "setSafeMode" not in dict(served.gate.admitted)
    await switch(served, GET, checked=True)
    await switch(served, ENTER, checked=True)
    assert served.gate.admitted[-2:] == [("setSafeMode", False), ("setSafeMode", True)]


async def test_a_switch_is_logged_and_a_question_is_not() -> None:
    served = await prepared()
    with captured("safe_mode.") as logged:
        await switch(served, GET)
        await switch(served, ENTER)
        await switch(served, GET)
    assert [(line["event"], line["action"]) for line in logged] == [
        ("safe_mode.switched", "SAFEMODE_ENTER")
    ]


@pytest.mark.row("B13")
async def test_b13_replicas_from_the_future_are_given_up_by_force_only() -> None:
    served = await prepared()
    cluster = served.face.cluster
    cluster.set_safe_mode(SafeMode(Pending()))
    cluster.blocks.count_future_bytes(7)
    with pytest.raises(RemoteFault, match="7 bytes in replicas that are newer") as refused:
        await switch(served, LEAVE)
    assert refused.value.java_class == IO_EXCEPTION
    assert await switch(served, GET)
    assert not await switch(served, FORCE_EXIT)
    assert cluster.blocks.map.safe_counts()[2] == 0
    assert not cluster.blocks.is_starting()


def test_each_edit_has_words_to_be_refused_with() -> None:
    assert set(WORDS) == {name for name, call in WRITES.items() if not call.checked_as_read}


@pytest.mark.parametrize("method", sorted(WORDS))
def test_the_words_name_fields_of_the_request(method: str) -> None:
    request: Callable[[], Message] = getattr(calls, f"{method[0].upper()}{method[1:]}RequestProto")
    message = request()
    told = {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
    assert WORDS[method].format_map(told)
