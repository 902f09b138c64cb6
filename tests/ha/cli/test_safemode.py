"""``nnha safemode``: what NameNodes are asked, and how the command ends by their answers."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest

from ha.cluster.candidates import candidates_of
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, CLIENT_PROTOCOL, IO_EXCEPTION
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.server import RpcServer
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import SafeModeActionProto
from tests.ha.cli import schema
from tests.ha.cli.conftest import PORTS
from tests.ha.cli.nnha_run import Told, nnha
from tests.ha.cli.stand_ins import LOOPBACK, write_configuration
from tests.ha.cli.test_cluster_view import WELL

TIP: Final = "The reported blocks 0 needs additional 3 blocks"
DENIED: Final = RemoteFault(ACCESS_CONTROL, "Superuser privilege is required\n\tat a.stack(Trace)")
REFUSED: Final = RemoteFault(IO_EXCEPTION, "Cannot leave safe mode: 5 replicas would be deleted")
LATE: Final = TimeoutError()
HUNG_UP: Final = ConnectionError()
DOWN: Final = OSError()

Answer = bool | Exception


@dataclass
class NameNode:
    """Answers setSafeMode as it is scripted; the last answer stays."""

    script: list[Answer]
    asked: list[str] = field(default_factory=list)
    server: RpcServer | None = None
    on: bool = False

    async def switch(
        self, _: Call, request: calls.SetSafeModeRequestProto
    ) -> calls.SetSafeModeResponseProto:
        assert not request.checked, "a standby would refuse"
        self.asked.append(SafeModeActionProto.Name(request.action).removeprefix("SAFEMODE_"))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer is LATE:
            await asyncio.Event().wait()
        if answer is HUNG_UP:
            assert self.server is not None
            self.server.abort_connections()
        if isinstance(answer, RemoteFault):
            raise answer
        self.on = answer is True
        return calls.SetSafeModeResponseProto(result=self.on)


@asynccontextmanager
async def running(conf_dir: Path, **scripts: list[Answer]) -> AsyncIterator[list[NameNode]]:
    found, ports = [], dict(PORTS)
    async with AsyncExitStack() as stack:
        for name, script in scripts.items():
            one = NameNode(script)
            found.append(one)
            if script[0] is DOWN:
                continue
            answers = {"setSafeMode": Method(calls.SetSafeModeRequestProto, one.switch)}
            one.server = RpcServer([RpcProtocol(CLIENT_PROTOCOL, answers)])
            page = Endpoint(
                status=lambda one=one: {"files": {"safe_mode": TIP if one.on else None, **ZEROS}},  # type: ignore[misc]
                healthy=lambda: None,
            )
            for kind, server in (("rpc", one.server), ("http", page)):
                ports[f"{kind}-{name}"] = await server.start(LOOPBACK, 0)
                stack.push_async_callback(server.stop)
        write_configuration(conf_dir, ports)
        yield found


ZEROS: Final = dict.fromkeys(
    ("live_datanodes", "stale_datanodes", "dead_datanodes", "capacity_bytes", "used_bytes",
     "remaining_bytes", "blocks", "under_replicated", "missing", "corrupt"), 0,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command line, the answers of both NameNodes, and what comes of it."""

    words: str
    nn1: list[Answer]
    nn2: list[Answer]
    code: int
    said: list[str]
    asked: tuple[list[str], list[str]]


CASES: Mapping[str, Case] = {
    "off on both": Case(
        "get", [False], [False], 0, ["off at nn1, nn2"], (["GET"], ["GET"])),
    "on on one, and what it waits for": Case(
        "get", [True], [False], 0, ["on at nn1, off at nn2", TIP], (["GET"], ["GET"])),
    "one alone is asked": Case("get nn2", [True], [False], 0, ["off at nn2"], ([], ["GET"])),
    "one is down": Case(
        "get", [DOWN], [True], 6, ["on at nn2, not known at nn1", "no connection"], ([], ["GET"])),
    "one does not answer in time": Case(
        "get", [LATE], [True], 6, ["not known at nn1", "no answer"], (["GET"], ["GET"])),
    "there is no such NameNode": Case(
        "get nn7", [True], [True], 3, ["no NameNode nn7", "nn1, nn2"], ([], [])),
    "entered on both": Case(
        "enter --yes", [True], [True], 0, ["on at nn1, nn2"], (["ENTER"], ["ENTER"])),
    "left on both": Case(
        "leave --yes", [False], [False], 0, ["off at nn1, nn2"], (["LEAVE"], ["LEAVE"])),
    "left by force": Case(
        "forceExit --yes nn1", [False], [True], 0, ["off at nn1"], (["FORCE_EXIT"], [])),
    "not confirmed": Case(
        "enter", [True], [True], 3, ["not confirmed", "nnha safemode enter --yes"], ([], [])),
    "not confirmed for one": Case(
        "leave nn2", [True], [True], 3, ["nnha safemode leave nn2 --yes"], ([], [])),
    "not the superuser": Case(
        "enter --yes", [DENIED], [DENIED], 7,
        ["NOT AUTHORISED", "Superuser privilege", "user that runs the NameNodes"],
        (["ENTER"], ["ENTER"])),
    "refused by both": Case(
        "leave --yes", [REFUSED], [REFUSED], 3,
        ["REFUSED (nothing was changed)", "5 replicas would be deleted", "forceExit"],
        (["LEAVE"], ["LEAVE"])),
    "refused by one": Case(
        "leave --yes", [REFUSED], [False], 4, ["FAILED", "off at nn2", "not known at nn1"],
        (["LEAVE"], ["LEAVE"])),
    "the disk is full, so it stays on": Case(
        "leave --yes", [True], [False], 4, ["FAILED", "on at nn1, off at nn2", TIP],
        (["LEAVE"], ["LEAVE"])),
    "entered on one, the other is down": Case(
        "enter --yes", [True], [DOWN], 4, ["FAILED", "on at nn1", "no connection"],
        (["ENTER"], [])),
    "both are down": Case(
        "enter --yes", [DOWN], [DOWN], 6, ["nothing was changed", "no connection"], ([], [])),
    "no answer to a change": Case(
        "enter --yes", [LATE], [True], 5, ["OUTCOME UNKNOWN", "nnha safemode get"],
        (["ENTER"], ["ENTER"])),
    "hung up after the change": Case(
        "leave --yes", [HUNG_UP], [False], 5, ["OUTCOME UNKNOWN", "not known at nn1"],
        (["LEAVE"], ["LEAVE"])),
    "waited for": Case(
        "wait", [True, False], [False], 0, ["off at nn1, nn2"], (["GET"] * 2, ["GET"] * 2)),
    "waited for one that starts": Case(
        "wait nn1", [HUNG_UP, False], [True], 0, ["off at nn1"], (["GET"] * 2, [])),
    "waited for long enough": Case(
        "wait --for 1s", [True], [False], 4, ["FAILED", "on at nn1, off at nn2", TIP],
        (["GET"] * 2, ["GET"] * 2)),
    "waited for one that is down": Case(
        "wait --for 1s", [DOWN], [False], 6, ["not known at nn1"], ([], ["GET"] * 2)),
    "there is no waiting for one that refuses": Case(
        "wait", [DENIED], [False], 7, ["Superuser privilege"], (["GET"], ["GET"])),
}  # fmt: skip


async def safemode(conf_dir: Path, words: str, *more: str) -> Told:
    return await nnha(
        "safemode", *words.split(), "--timeout", "0.5", "--conf-dir", str(conf_dir), *more
    )


@pytest.mark.parametrize("case", CASES)
async def test_each_answer_has_its_end(tmp_path: Path, case: str) -> None:
    one = CASES[case]
    async with running(tmp_path, nn1=list(one.nn1), nn2=list(one.nn2)) as namenodes:
        told = await safemode(tmp_path, one.words)
    assert told.code == one.code, told
    for text in one.said:
        assert text in told.out
    assert "stack(Trace)" not in told.out
    assert tuple(node.asked for node in namenodes) == one.asked


async def test_a_wait_says_what_is_waited_for_and_no_line_twice(tmp_path: Path) -> None:
    async with running(tmp_path, nn1=[True, True, False], nn2=[False]):
        told = await safemode(tmp_path, "wait")
    assert told.code == 0
    assert told.err.count(TIP) == 1


async def test_a_program_reads_the_state_of_each(tmp_path: Path) -> None:
    async with running(tmp_path, nn1=[True], nn2=[DOWN]):
        told = await safemode(tmp_path, "get", "-o", "json")
    assert schema.faults("ending", told.document) == []
    seen = {one["node"]: (one["fit"], one["text"]) for one in told.document["reasons"]}
    assert seen["nn1"] == (False, f"on: {TIP}")
    assert "no connection" in seen["nn2"][1]
    assert (told.document["outcome"], told.document["exit_code"]) == ("unreachable", 6)


@pytest.mark.parametrize(("words", "audited"), [("enter --yes", True), ("get", False)])
async def test_changes_are_audited_and_questions_are_not(
    tmp_path: Path, words: str, *, audited: bool
) -> None:
    audit = tmp_path / "audit"
    async with running(tmp_path, nn1=[True], nn2=[True]):
        await safemode(tmp_path, words, "-D", f"nnha.audit.file={audit}")
    assert ("safemode enter" in audit.read_text() if audit.exists() else False) is audited


BLOCKS = (
    "The reported blocks 0 needs additional 7 blocks to reach the threshold 0.9990 of total blocks "
    "7."
)
NODES = (
    "The number of live datanodes 0 needs an additional 1 live datanodes to reach the minimum "
    "number 1."
)
END = "Safe mode will be turned off automatically"
SAFE_MODES = {
    # Hadoop's words, what a row says, what helps
    "its extension": (
        "The reported blocks 7 has reached the threshold 0.9990 of total blocks 7. The number of "
        f"live datanodes 3 has reached the minimum number 0. In safe mode extension. {END} in 29 "
        "seconds.",
        "it ends by itself in 29 s", "nnha safemode wait nn2",
    ),
    "blocks": (
        f"{BLOCKS}\nThe number of live datanodes 0 has reached the minimum number 0. {END} once "
        "the thresholds have been reached.", BLOCKS, "nnha safemode wait nn2",
    ),
    "blocks and DataNodes": (
        f"{BLOCKS}\n{NODES}\n{END} once the thresholds have been reached.", BLOCKS,
        "nnha safemode wait nn2",
    ),
    "Hadoop's own": (
        f"The NameNode is in safemode. {BLOCKS}\n{END} once the thresholds have been reached.",
        f"The NameNode is in safemode. {BLOCKS}", "nnha safemode wait nn2",
    ),
    "an operator's": (
        'It was turned on manually. Use "hdfs dfsadmin -safemode leave" to turn safe mode off.',
        "It was turned on manually.", "nnha safemode leave nn2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAFE_MODES)
def test_safe_mode_is_one_short_obstacle(case: str) -> None:
    reason, said, helps = SAFE_MODES[case]
    rows = tuple(
        replace(row, ready=False, not_ready_reason=reason) if row.namenode == "nn2" else row
        for row in WELL.namenodes
    )
    (one,) = [one for one in candidates_of(replace(WELL, namenodes=rows)) if one.namenode == "nn2"]
    assert one.why_not() == f"NameNode: in safe mode: {said}"
    assert one.what_helps() == helps
