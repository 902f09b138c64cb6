"""An absurd promise is replaced on a stopped node, and a real one never."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from journal.core.state import JournalState
from journal.model import MAX_EPOCH_LEAP, Epoch
from journal.node.process.promise_repair import repair_promise, why_not
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import LIFE, NAMESPACE
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, formatted_nodes

ABSURD = 2**61
STATE = JournalState(namespace=NAMESPACE, incarnation=LIFE, promised=Epoch(ABSURD), writer=Epoch(4))


def told(*promised: int, writer: int = 4) -> dict[str, pb.JournalStatus]:
    return {
        f"n{number}": pb.JournalStatus(last_promised_epoch=one, last_writer_epoch=writer)
        for number, one in enumerate(promised)
    }


CASES = {
    "the others are sane": (STATE, told(5, 5), 5, None),
    "one other was hit, too": (STATE, told(5, ABSURD), 5, None),
    "all were": (STATE, told(ABSURD, ABSURD), 5, "every other node"),
    "an epoch below another's promise": (STATE, told(5, 6), 5, "another node has promised 6"),
    "an epoch below what has written": (STATE, told(5, 5, writer=6), 5, "epoch 6 has written"),
    "an epoch that wrote here": (replace(STATE, writer=Epoch(9)), told(5, 5), 5, "epoch 9"),
    "one that was left behind": (
        replace(STATE, promised=Epoch(5)),
        told(2**30, 2**30),
        2**30,
        None,
    ),
    "a promise that a failover could have made": (
        replace(STATE, promised=Epoch(5 + MAX_EPOCH_LEAP // 2)),
        told(5, 5),
        5,
        "no absurd one",
    ),
}


@pytest.mark.parametrize(("state", "others", "epoch", "why"), CASES.values(), ids=list(CASES))
def test_only_an_absurd_promise_is_replaced(
    state: JournalState, others: dict[str, pb.JournalStatus], epoch: int, why: str | None
) -> None:
    found = why_not(state, others, Epoch(epoch))
    assert found is None if why is None else why in (found or "")


async def repair(nodes: Nodes, folder: Path, *options: str) -> Result:
    uri = ";".join(f"{host}:{port}" for host, port in nodes.addresses)
    settings = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1,nn2",
        "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:1",
        "dfs.namenode.rpc-address.ns1.nn2": "127.0.0.1:2",
        "dfs.namenode.shared.edits.dir": f"qjournal://{uri}/{JOURNAL}",
        "dfs.journalnode.edits.dir": str(folder),
    }
    words = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
    conf = folder.parent / "conf"
    conf.mkdir(exist_ok=True)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (conf / name).write_text("<configuration/>")
    words += ["--conf-dir", str(conf)]
    return await asyncio.to_thread(CliRunner().invoke, repair_promise, [*options, *words])


def test_a_configuration_that_cannot_be_used_is_wrong_usage(tmp_path: Path) -> None:
    words = ["--epoch", "1", "--conf-dir", str(tmp_path)]
    assert CliRunner().invoke(repair_promise, words).exit_code == 2


async def test_a_node_that_promised_an_absurd_epoch_serves_again(tmp_path: Path) -> None:
    async with formatted_nodes(tmp_path) as nodes:
        assert await nodes.recover() == (1, 0)
        promise = nodes.current(0) / "last-promised-epoch"
        running = await repair(nodes, tmp_path / "jn0", "--epoch", "1", "--yes")
        assert running.exit_code == 3, running.output
        assert "in use" in running.output
        await nodes.stop(0)
        promise.write_text(f"{ABSURD}\n")
        asked = await repair(nodes, tmp_path / "jn0", "--epoch", "1")
        assert (asked.exit_code, promise.read_text()) == (3, f"{ABSURD}\n")
        assert "--yes" in asked.output
        await nodes.stop(1)
        alone = await repair(nodes, tmp_path / "jn0", "--epoch", "1", "--yes")
        assert (alone.exit_code, promise.read_text()) == (6, f"{ABSURD}\n")
        await nodes.start(1)
        done = await repair(nodes, tmp_path / "jn0", "--epoch", "1", "--yes")
        assert (done.exit_code, promise.read_text()) == (0, "1\n"), done.output
        assert '"event": "journal.promise_repaired"' in done.output
        assert f'"before": {ABSURD}, "after": 1' in done.output
        await nodes.start(0)
        await nodes.stop(2)
        assert await nodes.recover() == (2, 0)
