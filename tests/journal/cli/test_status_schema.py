"""The JSON of ``nnha journal status``: it fits the schema in the command's folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import journal.cli
from journal.core.requests import ReportDamage
from journal.model import TxId
from tests.ha.cli.schema import faults
from tests.journal.reader.test_verify import run, told_by
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, formatted_nodes, write_segment

SCHEMA = Path(journal.cli.__file__).parent / "schemas" / "journal-status.json"
GOLDEN = Path(__file__).parent / "golden" / "journal_status.json"


async def write(nodes: Nodes) -> None:
    """1-3 finalized, 4 begun, and the writer gone: no heartbeat moves what is committed."""
    writer = nodes.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.settle(timeout_seconds=30)
    await writer.close()


def steady(nodes: Nodes, told: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from run to run: ports, names that are drawn, and the disk's size."""
    text = json.dumps(told)
    for i in range(3):
        text = text.replace(nodes.name(i), f"jn{i + 1}:8485")
    shown: dict[str, Any] = json.loads(text)
    for number, row in enumerate(shown["nodes"]):
        if row["incarnation"] is not None:
            row["incarnation"] = f"{number:032x}"
        if row["disk_total_bytes"] is not None:
            assert 0 < row["disk_free_bytes"] <= row["disk_total_bytes"]
            row["disk_free_bytes"], row["disk_total_bytes"] = 1000, 2000
        if row["reason"] is not None:
            row["reason"] = "it does not answer"
    return shown


async def told(nodes: Nodes, tmp_path: Path) -> dict[str, Any]:
    document: dict[str, Any] = told_by(await run(nodes, tmp_path, "status", "-o", "json"))
    assert faults(SCHEMA, document) == []
    return document


async def test_a_voter_a_learner_and_a_node_that_is_down_are_told_as_ever(tmp_path: Path) -> None:
    async with formatted_nodes(tmp_path) as nodes:
        await write(nodes)
        await nodes.stop(1, 2)
        shutil.rmtree(nodes.current(1).parent)
        shutil.copytree(nodes.current(2).parent, nodes.current(1).parent)
        await nodes.start(1)
        shown = steady(nodes, await told(nodes, tmp_path))
    assert shown == json.loads(GOLDEN.read_text()), json.dumps(shown, indent=2)


async def test_damage_a_stopped_journal_and_no_journal_fit_the_schema(tmp_path: Path) -> None:
    async with formatted_nodes(tmp_path) as nodes:
        await write(nodes)
        await nodes.stop(2)
        shutil.rmtree(nodes.current(2).parent)
        await nodes.start(2)
        damaged, stopped = (nodes.daemons[i] for i in (0, 1))
        assert damaged is not None
        assert stopped is not None
        hurt, failing = damaged.node.find(JOURNAL), stopped.node.find(JOURNAL)
        assert hurt is not None
        assert failing is not None
        await hurt.ask(ReportDamage(TxId(1), "a test said so"))
        failing.fail("a test said so")
        rows = (await told(nodes, tmp_path))["nodes"]
    assert [row["state"] for row in rows] == ["damaged", "stopped", "not formatted"]
    assert rows[0]["damaged_segments"] == [1]
    assert rows[1]["failed_because"] == "a test said so"


def test_the_schema_can_say_no() -> None:
    sound = json.loads(GOLDEN.read_text())
    assert faults(SCHEMA, sound) == []
    (first, *_) = sound["nodes"]
    for key, value in (("state", "fine"), ("behind", "3"), ("incarnation", "short"), ("new", 1)):
        document = {**sound, "nodes": [{**first, key: value}]}
        assert [fault for fault in faults(SCHEMA, document) if key in fault], key
    without = {key: value for key, value in first.items() if key != "learner"}
    assert faults(SCHEMA, {**sound, "nodes": [without]}) == ["$.nodes[0].learner is missing"]
