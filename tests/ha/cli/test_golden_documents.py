"""The JSON of each command, byte for byte: what scripts were written against must not change.

A wanted change: ``NNHA_REWRITE=1 pytest tests/ha/cli/test_golden_documents.py``; review the diff.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from ha.cli.explain.explanation import explain
from ha.cli.explain.history import as_json as history_json
from ha.cli.operate.plan.handover import plan_switchover
from ha.cluster.status_json import as_json as status_json
from ha.cluster.zookeeper_view import NoticesView
from ha.console.result import Ending
from ha.notices.model import Drain, HistoryEntry, Pause
from tests.ha.cli import schema
from tests.ha.cli.test_cluster_view import STANDBY, WELL
from tests.ha.notices.test_model import MEMBER, NOON, RECORD

FOLDER = Path(__file__).parent / "golden"
WON = HistoryEntry(12, dataclasses.replace(RECORD, namenode="nn1", previous="nn2"))
VIEW = dataclasses.replace(
    WELL,
    taken_at="2026-05-01T12:30:00.000Z",
    namenodes=(WELL.namenodes[0], dataclasses.replace(STANDBY, ready=False, not_ready_reason="x")),
    notices=NoticesView(
        pause=Pause(owner="ann@ops1", reason="y", since=NOON, until=NOON + timedelta(hours=1)),
        drains={"nn2": Drain(owner="bob@ops1", reason="z", since=NOON, until=None)},
        members={"nn1": MEMBER},
        history=(WON,),
    ),
)


def refusal() -> Mapping[str, object]:
    found = plan_switchover(VIEW, "nn2")
    assert isinstance(found, Ending)
    return found.as_json()


DOCUMENTS: dict[str, tuple[str, Callable[[], Mapping[str, object]]]] = {
    "status": ("status", lambda: status_json(VIEW)),
    "explain": ("explain", lambda: explain(VIEW).as_json()),
    "history": ("history", lambda: history_json("ns1", (HistoryEntry(13, None, "junk"), WON))),
    "switchover-refused": ("ending", refusal),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_what_it_was(name: str) -> None:
    kind, make = DOCUMENTS[name]
    text = json.dumps(make(), indent=2) + "\n"
    assert schema.faults(kind, json.loads(text)) == []
    path = FOLDER / f"{name}.json"
    if os.environ.get("NNHA_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
