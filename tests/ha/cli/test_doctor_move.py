"""What nnha doctor says before Hadoop's NameNodes get nnha's JournalNodes and ZKFCs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ha.cli.explain.doctor.move import NameNodeFacts, ask_namenodes, check_move
from ha.cluster.check_result import Severity
from ha.conf.configuration import Configuration, load_configuration
from tests.ha.cli.stand_ins import write_configuration

PORTS = {f"{kind}-{n}": 1 for kind in ("rpc", "http", "zkfc", "zkfc-http") for n in ("nn1", "nn2")}
RPC = "nnha.journalnode.hadoop-rpc-address"
EDITS = "dfs.namenode.shared.edits.dir"
WELL_SET = {RPC: "0.0.0.0:8485", EDITS: "qjournal://j1:8486;j2:8486;j3:8486/ns1"}
HADOOP = {
    "SoftwareVersion": "3.5.0",
    "SecurityEnabled": False,
    "RollingUpgradeStatus": None,
    "UpgradeFinalized": True,
    "Safemode": "",
    "NameJournalStatus": "Writing segment beginning at txid 1. j1:8485 (Written txid 9)",
}
OK, WARN, FAIL = Severity.OK, Severity.WARN, Severity.FAIL

CASES: dict[
    str, tuple[Mapping[str, str], Mapping[str, object], list[tuple[str, Severity, str]]]
] = {
    "all may move": ({}, {}, [("move of nn1", OK, "its daemons can be moved")]),
    "Kerberos there alone": (
        {}, {"SecurityEnabled": True}, [("move of nn1", FAIL, "demands Kerberos")]),
    "Kerberos on both sides": (
        {"hadoop.security.authentication": "kerberos"}, {"SecurityEnabled": True},
        [("move of nn1", OK, "its daemons can be moved")]),
    "a rolling upgrade": (
        {}, {"RollingUpgradeStatus": {"startTime": 1}},
        [("move of nn1", FAIL, "rolling upgrade is under way")]),
    "an upgrade": ({}, {"UpgradeFinalized": False}, [("move of nn1", FAIL, "not finalized")]),
    "safe mode": ({}, {"Safemode": "Safe mode is ON."}, [("move of nn1", FAIL, "safe mode")]),
    "a JournalNode lags": (
        {}, {"NameJournalStatus": "j1:8485 (Written txid 9) (will re-join on next segment)"},
        [("move of nn1", WARN, "given up a JournalNode"), ("move of nn1", OK, "3.5.0")]),
    "no port for Hadoop's NameNodes": (
        {RPC: ""}, {},
        [("move of the journal", FAIL, "could not reach"), ("move of nn1", OK, "3.5.0")]),
    "one port for both": (
        {RPC: "0.0.0.0:8486"}, {},
        [("move of the journal", FAIL, "names port 8486"), ("move of nn1", OK, "3.5.0")]),
    "a cluster of nnha is not moved": ({RPC: ""}, {"SoftwareVersion": "nnha 0.1.0"}, []),
}  # fmt: skip


def configured(folder: Path, keys: Mapping[str, str]) -> Configuration:
    set_keys = {name: value for name, value in (WELL_SET | dict(keys)).items() if value}
    write_configuration(folder, PORTS, **set_keys)
    return load_configuration(folder)


@pytest.mark.parametrize("case", CASES)
def test_what_stands_in_the_way(case: str, tmp_path: Path) -> None:
    keys, beans, expected = CASES[case]
    facts = {"nn1": NameNodeFacts(beans=HADOOP | dict(beans)), "nn2": NameNodeFacts()}
    found = list(check_move(configured(tmp_path, keys), "ns1", facts))
    assert [(one.check, one.verdict) for one in found] == [each[:2] for each in expected]
    for finding, (_, _, words) in zip(found, expected, strict=True):
        assert words in finding.found
        assert finding.next or finding.verdict is OK


async def test_beans_are_asked_for_where_there_is_no_status_page(tmp_path: Path) -> None:
    async def jmx(_request: web.Request) -> web.Response:
        return web.json_response({"beans": [HADOOP]})

    hadoops = web.Application()
    hadoops.add_routes([web.get("/jmx", jmx)])
    async with TestServer(hadoops) as server:
        write_configuration(tmp_path, PORTS | {"http-nn1": server.port or 0})
        found = await ask_namenodes(load_configuration(tmp_path), "ns1", seconds=10.0)
    assert found["nn1"].hadoop_version == "3.5.0"
    assert found["nn2"] == NameNodeFacts()
