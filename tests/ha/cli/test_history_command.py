"""nnha history over a real ZooKeeper, and the outcomes of a visit that goes wrong."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.znodes import connected
from ha.notices.model import FailoverKind, FailoverResult
from ha.notices.store import append_history, history_path
from tests.ha.cli import schema
from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.zookeeper_scope import Scope
from tests.ha.notices.test_model import RECORD

pytestmark = pytest.mark.zookeeper


async def fill(scope: Scope) -> list[int]:
    recent = replace(RECORD, at=datetime.now(UTC))
    failed = replace(
        recent,
        kind=FailoverKind.SWITCHOVER,
        actor="ann",
        cause="asked for by ann from ops1: new disk",
        result=FailoverResult.FAILED,
        failure="nn1 did not cede",
        fencing=(),
        epoch=None,
    )
    async with connected(scope.settings, deadline_seconds=30.0) as session:
        numbers = [await append_history(session, scope.settings, one) for one in (recent, failed)]
        made = await session.create_numbered(f"{history_path(scope.settings)}/r-", b"?")
    assert isinstance(made, Done)
    return numbers


async def test_the_table_tells_cause_and_failure_and_what_cannot_be_read(scope: Scope) -> None:
    await fill(scope)
    told = await nnha("history", *scope.words)
    assert told.code == 0
    rows = [line for line in told.out.splitlines() if line.strip()[:1].isdigit()]
    assert [
        one for row in rows for one in row.split() if one in ("UNREADABLE", "FAILED", "ok")
    ] == ["UNREADABLE", "FAILED", "ok"]
    folded = " ".join(told.out.split())  # a narrow screen folds the last column
    assert "asked for by ann from ops1: new disk; nn1 did not cede" in folded
    assert "nn1 stopped answering health checks" in folded


async def test_one_record_in_full_and_one_that_is_not_there(scope: Scope) -> None:
    number, _ = await fill(scope)
    told = await nnha("history", *scope.words, "--show", str(number))
    assert f"{number}  nn1 -> nn2  succeeded in 0.25 s" in told.out
    assert "  phase     fenced            250.0 ms" in told.out
    assert "  fencing   nn1: sshfence: ok in 0.20 s: killed" in told.out
    told = await nnha("history", *scope.words, "--show", "7777", "-o", "json")
    assert (told.code, told.document["code"]) == (3, "NO_SUCH_RECORD")
    assert schema.faults("ending", told.document) == []


async def test_the_document_is_as_its_schema_says(scope: Scope) -> None:
    await fill(scope)
    told = await nnha("history", *scope.words, "-o", "json")
    assert schema.faults("history", told.document) == []
    assert [one["record"] is None for one in told.document["records"]] == [True, False, False]
    told = await nnha("history", *scope.words, "-n", "1", "-o", "json")
    assert len(told.document["records"]) == 1


async def test_no_failover_yet_is_no_error(scope: Scope) -> None:
    told = await nnha("history", *scope.words)
    assert (told.code, told.out.strip()) == (0, "No failover is recorded yet.")


async def test_a_nameservice_that_is_not_formatted_is_told(scope: Scope) -> None:
    words = (*scope.words, "-D", "ha.zookeeper.parent-znode=/nowhere")
    told = await nnha("history", *words)
    assert told.code == 3
    assert "Next: nnha zkfc --format-zk" in told.out


async def test_no_zookeeper_is_told_in_time(scope: Scope) -> None:
    told = await nnha(
        "history", *scope.words, "-D", "ha.zookeeper.quorum=127.0.0.1:1", "-o", "json"
    )
    assert (told.code, told.document["code"]) == (6, "ZOOKEEPER_UNREACHABLE")
    assert schema.faults("ending", told.document) == []
