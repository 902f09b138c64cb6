"""``nnha journal verify`` and ``status`` against real nodes and real files."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from journal.cli.group import journal
from journal.model import TxId
from tests.journal.writer import journal_cluster as journals
from tests.journal.writer.journal_cluster import Nodes, edits


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with journals.formatted_nodes(tmp_path) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await journals.write_segment(writer, 1, 3)
        await journals.write_segment(writer, 4, 6, "a")
        await writer.start_segment(TxId(7))
        await writer.write(TxId(7), 2, edits(7, 8))
        await writer.settle(timeout_seconds=30)
        yield nodes
        await writer.close()


async def run(nodes: Nodes, tmp_path: Path, *arguments: str) -> Result:
    uri = "qjournal://" + ";".join(f"{h}:{p}" for h, p in nodes.addresses) + f"/{journals.JOURNAL}"
    properties = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:8020",
        "dfs.namenode.shared.edits.dir.ns1": uri,
    }
    rows = "".join(
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items()
    )
    conf = tmp_path / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
    (conf / "core-site.xml").write_text("<configuration/>")
    command = [arguments[0], "--conf-dir", str(conf), *arguments[1:]]
    return await asyncio.to_thread(CliRunner().invoke, journal, command)


def told_by(result: Result) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON; the nodes in this process may have logged something before it."""
    return json.loads(result.output[result.output.index("{\n") :])


async def test_a_sound_journal_is_well(nodes: Nodes, tmp_path: Path) -> None:
    result = await run(nodes, tmp_path, "verify", "--deep", "--json")
    assert result.exit_code == 0, result.output
    told = told_by(result)
    assert told["ok"]
    assert told["held"] == [[1, 8]]
    assert [node["missing"] for node in told["nodes"]] == [[], [], []]
    text = await run(nodes, tmp_path, "verify", "--deep")
    assert text.exit_code == 0
    assert "1-8 compared on 3 nodes: no difference, no gap" in text.output


async def test_a_changed_edit_is_named(nodes: Nodes, tmp_path: Path) -> None:
    path = nodes.current(1) / f"edits_{4:019d}-{6:019d}"
    path.write_bytes(path.read_bytes()[:8] + edits(4, 4, "a") + edits(5, 5, "b") + edits(6, 6, "a"))
    result = await run(nodes, tmp_path, "verify", "--deep", "--json")
    assert result.exit_code == 8, result.output
    (finding,) = told_by(result)["findings"]
    # The node sees it itself, and does not serve it.
    assert (finding["kind"], finding["first_txid"]) == ("damage", 4)
    assert finding["nodes"] == [nodes.name(1)]
    text = await run(nodes, tmp_path, "verify", "--deep")
    assert "its copy of the segment at 4 is damaged" in text.output


async def test_a_flipped_bit_is_named(nodes: Nodes, tmp_path: Path) -> None:
    path = nodes.current(2) / f"edits_{4:019d}-{6:019d}"
    data = bytearray(path.read_bytes())
    data[8 + len(edits(4, 5, "a")) + 15] ^= 1
    path.write_bytes(data)
    result = await run(nodes, tmp_path, "verify", "--deep", "--json")
    assert result.exit_code == 8, result.output
    told = told_by(result)
    (finding,) = told["findings"]
    assert (finding["kind"], finding["nodes"]) == ("damage", [nodes.name(2)])
    assert told["nodes"][0]["missing"] == []


async def test_a_node_that_lags_is_behind_and_no_fault(nodes: Nodes, tmp_path: Path) -> None:
    await nodes.stop(0)
    (nodes.current(0) / f"edits_{4:019d}-{6:019d}").unlink()
    await nodes.start(0)
    result = await run(nodes, tmp_path, "verify", "--deep", "--json")
    assert result.exit_code == 0, result.output
    assert told_by(result)["nodes"][0]["missing"] == [[4, 6]]


async def test_edits_that_nobody_has_are_a_gap(nodes: Nodes, tmp_path: Path) -> None:
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / f"edits_{4:019d}-{6:019d}").unlink()
    await nodes.start()
    result = await run(nodes, tmp_path, "verify", "--deep", "--json")
    assert result.exit_code == 8, result.output
    assert [f["kind"] for f in told_by(result)["findings"]] == ["gap"]


async def test_unreachable_nodes(nodes: Nodes, tmp_path: Path) -> None:
    await nodes.stop(1)
    one = await run(nodes, tmp_path, "verify", "--deep")
    assert one.exit_code == 0, one.output
    assert "connection refused" in one.output
    status = await run(nodes, tmp_path, "status", "--json")
    assert status.exit_code == 0
    rows = told_by(status)["nodes"]
    assert [row["reachable"] for row in rows] == [True, False, True]
    assert rows[0]["last_txid"] == 8
    await nodes.stop(2)
    two = await run(nodes, tmp_path, "verify", "--deep")
    assert two.exit_code == 6
    for i in (1, 2):
        assert nodes.name(i) in two.output
    assert (await run(nodes, tmp_path, "status")).exit_code == 6


async def test_no_configuration_is_told(tmp_path: Path) -> None:
    result = await asyncio.to_thread(
        CliRunner().invoke, journal, ["verify", "--conf-dir", str(tmp_path / "none")]
    )
    assert result.exit_code == 2
    assert "Error: " in result.output
