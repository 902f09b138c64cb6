"""The audit lines of clients' calls are Hadoop's, field by field; hostile names are escaped."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter

from ha.conf.configuration import load_configuration
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.protocol import Call
from ha.security.audit import MOST_WAITING, AuditFile
from ha.security.caller import Method as Proof
from hadoop.proto import client_namenode_pb2 as calls
from journal.model import TxId
from namenode_sim.client_audit import ClientAudit, client_audit, unwatched
from namenode_sim.client_protocol.audit import WORDS
from namenode_sim.namespace.namespace import Namespace
from tests.log_lines import captured
from tests.namenode_sim.carried_out import carried_out
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, serve
from tests.namenode_sim.process.audit_calls import CALLS, GOLDEN, Asked, shown
from tests.namenode_sim.startup.startup_world import write_site


def call_of(asked: Asked, number: int = 0) -> Call:
    return Call(
        CLIENT_PROTOCOL, asked.method, bytes([number + 1]) * 16, number, 0,
        asked.user or SUPERUSER, None, "127.0.0.1", asked.context,
    )  # fmt: skip


async def written(
    asked: Asked,
    *,
    proto: str = "rpc",
    call: Mapping[str, Any] | None = None,
    left_out: frozenset[str] = frozenset(),
    context_size: int = 128,
) -> list[str]:
    """Return the lines of one call to a new NameNode."""
    lines = list[str]()
    audit = ClientAudit(Namespace.empty(SUPERUSER), lines.extend, left_out, context_size)
    method = audit.watched(serve().face.protocol(), proto).methods[asked.method]
    await carried_out(method, replace(call_of(asked), **(call or {})), asked.request)
    return lines


LOOK = Asked("getFileInfo", calls.GetFileInfoRequestProto(src="/"), context="c" * 300)


async def test_each_call_has_the_lines_of_hadoop() -> None:
    served, lines = serve(), list[str]()
    served.face.roll = lambda: TxId(1)
    audit = ClientAudit(served.face.namespace, lines.extend)
    methods = audit.watched(served.face.protocol()).methods
    found = list[str]()
    for number, asked in enumerate(CALLS):
        lines.clear()
        with suppress(RemoteFault):  # as the caller would get it
            await carried_out(methods[asked.method], call_of(asked, number), asked.request)
        found.append(shown(asked, [line.partition("audit: ")[2] for line in lines], SUPERUSER))
    assert "".join(found) == GOLDEN.read_text()


async def test_a_line_is_dated_as_hadoops() -> None:
    (line,) = await written(LOOK)
    assert re.match(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO FSNamesystem\.audit: allowed=true\t", line
    )


async def test_what_is_configured_counts() -> None:
    assert await written(LOOK, left_out=frozenset({"open", "getfileinfo"})) == []
    (line,) = await written(LOOK, context_size=5)
    assert line.endswith("\tproto=rpc\tcallerContext=ccccc")
    (line,) = await written(LOOK, context_size=0)
    assert line.endswith("\tproto=rpc")
    (line,) = await written(LOOK, proto="webhdfs")
    assert "\tproto=webhdfs\t" in line


PROOFS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "it only says so": ({}, "bob (auth:SIMPLE)"),
    "the kernel says so": ({"proof": Proof.PEER_UID}, "bob (auth:SIMPLE)"),
    "a ticket": ({"proof": Proof.KERBEROS}, "bob (auth:KERBEROS)"),
    "a token": ({"proof": Proof.TOKEN}, "bob (auth:TOKEN)"),
    "for another": ({"real_user": "hue"}, "bob (auth:PROXY) via hue (auth:SIMPLE)"),
    "for itself": ({"real_user": "bob"}, "bob (auth:SIMPLE)"),
    "a hostile name": ({"user": "b\tip=/1\n"}, r"b\tip=/1\n (auth:SIMPLE)"),
}


@pytest.mark.parametrize("case", PROOFS)
async def test_the_caller_is_named_as_hadoop_names_it(case: str) -> None:
    changes, expected = PROOFS[case]
    (line,) = await written(LOOK, call={"user": "bob", **changes})
    assert f"\tugi={expected}\tip=/127.0.0.1\tcmd=getfileinfo\t" in line


@pytest.mark.parametrize("word", ["src", "callerContext"])
async def test_no_name_begins_a_field_a_line_or_a_sequence_for_a_terminal(word: str) -> None:
    for code in (*range(0x20), 0x22, 0x5C, 0x7F, 0x85, 0xE9, 0x202E, 0x2028, 0x1F600):
        text = f"/x{chr(code)}y"
        asked = Asked("getFileInfo", calls.GetFileInfoRequestProto(src=text), context=text)
        lines = await written(asked) if code else []
        for line in lines:
            assert line.isascii()
            assert line.replace("\t", "").isprintable()
            assert len(line.split("\t")) == 9
            assert f"{word}={text}" not in line


def test_every_call_has_its_words_or_is_known_to_have_none() -> None:
    served = serve().face.protocol().methods
    assert set(WORDS) <= set(served)
    assert set(served) - set(WORDS) == {
        # Hadoop 3.5 writes no line of these, or nnha refuses them.
        "getAdditionalDatanode", "getCurrentEditLogTxid", "getDataEncryptionKey",
        "getFsECBlockGroupStats",
        "getFsReplicatedBlockStats", "getFsStats", "getHAServiceState", "getPreferredBlockSize",
        "getServerDefaults", "getStoragePolicies", "getStoragePolicy", "listCorruptFileBlocks",
        "msync", "renewLease", "reportBadBlocks", "rollingUpgrade", "updateBlockForPipeline",
        "updatePipeline", "upgradeStatus",
    }  # fmt: skip


def test_it_is_off_unless_a_file_is_named_as_hadoops(tmp_path: Path) -> None:
    namespace = Namespace.empty(SUPERUSER)
    write_site(tmp_path, {})
    assert client_audit(load_configuration(tmp_path, environment={}), namespace) is unwatched
    named = [f"nnha.audit.client={tmp_path}/audit.log"]
    configuration = load_configuration(tmp_path, named, environment={})
    assert client_audit(configuration, namespace) is not unwatched


@pytest.mark.parametrize(("enabled", "size"), [("true", 5), ("false", 0)])
def test_commands_and_contexts_are_those_of_hadoops_keys(
    tmp_path: Path, enabled: str, size: int
) -> None:
    write_site(tmp_path, {})
    settings = (
        f"nnha.audit.client={tmp_path}/audit.log",
        "dfs.namenode.audit.log.debug.cmdlist=open,getfileinfo",
        f"hadoop.caller.context.enabled={enabled}",
        "hadoop.caller.context.max.size=5",
    )
    conf = load_configuration(tmp_path, settings, environment={})
    watched: Any = client_audit(conf, Namespace.empty(SUPERUSER))
    audit = vars(watched.__self__)
    assert (audit["_left_out"], audit["_context_size"]) == ({"open", "getfileinfo"}, size)


def test_a_disk_that_hangs_drops_lines_and_counts_them(tmp_path: Path) -> None:
    """Use a pipe without a reader for the disk: its open never returns.

    What the thread takes before that, at most what may wait, comes on top of what waits then.
    """
    pipe = tmp_path / "audit.log"
    os.mkfifo(pipe)
    lost = Counter("nnha_lost_for_a_test", "x")
    file = AuditFile(pipe, lost)
    for _ in range(3 * MOST_WAITING):
        file.append(["x"])
    (sample,) = [one for one in next(iter(lost.collect())).samples if one.name.endswith("_total")]
    assert MOST_WAITING - 1 <= sample.value <= 2 * MOST_WAITING
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.close(reader)


async def test_an_error_in_writing_a_line_is_none_of_the_call() -> None:
    def broken(_: Sequence[str]) -> None:
        raise RuntimeError("no line")

    audit = ClientAudit(Namespace.empty(SUPERUSER), broken)
    method = audit.watched(serve().face.protocol()).methods["getFileInfo"]
    with captured("audit.") as logs:
        answer = await carried_out(method, call_of(LOOK), LOOK.request)
    assert isinstance(answer, calls.GetFileInfoResponseProto)
    assert [one["event"] for one in logs] == ["audit.call_not_written"]
