"""Commands show NameNodes and ZKFCs of Hadoop's as they are, though they have no page of ours."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ha.cli.operate.plan.handover import HandoverPlan, plan_switchover
from ha.cluster.candidates import candidates_of
from ha.cluster.files_view import FilesView
from ha.cluster.unreachable import NOT_RUNNING
from ha.cluster.view import NameNodeRow
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.stand_ins import Cluster
from tests.ha.cli.test_cluster_view import ACTIVE, STANDBY, WELL
from tests.ha.cli.test_status import look, text_of
from tests.stand_in import stand_in

AUTOMATIC = ("dfs.ha.automatic-failover.enabled=true", "ha.zookeeper.quorum=127.0.0.1:1")
BEAN = {
    "name": "Hadoop:service=NameNode,name=NameNodeInfo",
    "SoftwareVersion": "3.5.0",
    "Safemode": "Safe mode is ON. The reported blocks 0 needs additional 3 blocks",
    "JournalTransactionInfo": json.dumps(
        {"LastAppliedOrWrittenTxId": "4711", "MostRecentCheckpointTxId": "4000"}
    ),
}

BLOCKS = {
    "name": "Hadoop:service=NameNode,name=FSNamesystem",
    "NumLiveDataNodes": 3, "StaleDataNodes": 1, "NumDeadDataNodes": 2, "CapacityTotal": 90,
    "CapacityUsed": 30, "CapacityRemaining": 60, "BlocksTotal": 7, "UnderReplicatedBlocks": 4,
    "MissingBlocks": 1, "CorruptBlocks": 2, "VolumeFailuresTotal": 5,
}  # fmt: skip


@asynccontextmanager
async def page_of_hadoop() -> AsyncIterator[int]:
    """Serve HTTP as a NameNode of Hadoop's: no /status, and its bean at /jmx."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        found = request.startswith(b"GET /jmx?")
        body = (
            json.dumps({"beans": [BLOCKS if b"FSName" in request else BEAN]}).encode()
            if found
            else b"<html>not found</html>"
        )
        head = "HTTP/1.0 200 OK" if found else "HTTP/1.0 404 Not Found"
        writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with stand_in(speak) as port:
        yield port


async def test_a_namenode_of_hadoops_is_asked_for_its_bean(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.namenodes["nn1"].page = {"epoch": 7, "last_txid": 5000}
    async with page_of_hadoop() as port:
        view = await look(tmp_path, f"dfs.namenode.http-address.ns1.nn2=127.0.0.1:{port}")
    row = view.namenodes[1]
    assert (row.software, row.last_txid, row.error) == ("Hadoop 3.5.0", 4711, None)
    assert "Hadoop 3.5.0, in safe mode" in text_of(view)
    assert " 404" not in text_of(view)  # a port may have these digits
    assert view.lag(row) == 289
    assert row.files == FilesView(BEAN["Safemode"], 3, 1, 2, 90, 30, 60, 7, 4, 1, 2, 0, 5)
    assert view.namenodes[0].software == "nnha"


async def test_a_zkfc_whose_rpc_port_is_open_runs(cluster: Cluster, tmp_path: Path) -> None:
    """Hadoop's ZKFC has no HTTP page and writes no znode of ours; it hands over all the same."""
    view = await look(tmp_path, *AUTOMATIC, "nnha.zkfc.http-address.ns1.nn2=127.0.0.1:1")
    zkfc = view.zkfcs[1]
    assert zkfc.error is None
    assert "its RPC port is open" in (zkfc.note or "")
    assert plan_switchover(view, "nn2") == HandoverPlan("nn2", "nn1")
    done = await nnha(
        "switchover", "nn2", "--yes", "--conf-dir", str(tmp_path),
        *(word for key in AUTOMATIC for word in ("-D", key)),
        "-D", "nnha.zkfc.http-address.ns1.nn2=127.0.0.1:1",
    )  # fmt: skip
    assert done.code == 0, done


def how_to_start(*others: NameNodeRow) -> str:
    gone = dataclasses.replace(STANDBY, state=None, error=NOT_RUNNING)
    view = dataclasses.replace(WELL, namenodes=(*others, gone))
    return next(one for one in candidates_of(view) if one.namenode == "nn2").what_helps()


def test_our_namenode_is_never_started_on_a_name_directory_of_hadoops() -> None:
    hadoops = dataclasses.replace(ACTIVE, software="Hadoop 3.5.0")
    assert "nnha namenode" not in how_to_start(hadoops)
    assert "hdfs --daemon start namenode" in how_to_start(hadoops)
    nobody_knows = how_to_start(dataclasses.replace(ACTIVE, state=None, error=NOT_RUNNING))
    assert nobody_knows.startswith("start it on h with the software that wrote its name directory")
    ours = dataclasses.replace(ACTIVE, software="nnha")
    assert how_to_start(ours) == "start it on h: nnha namenode -D dfs.ha.namenode.id=nn2"


def test_hadoops_namenode_is_not_said_to_have_a_lease() -> None:
    hadoops = dataclasses.replace(ACTIVE, software="Hadoop 3.5.0")
    zkfcs = (dataclasses.replace(WELL.zkfcs[0], fencing_methods=("journal-epoch",)), WELL.zkfcs[1])
    told = text_of(dataclasses.replace(WELL, namenodes=(hadoops, STANDBY), zkfcs=zkfcs))
    assert "may serve reads until it learns of its successor (Hadoop's has no lease)" in told
