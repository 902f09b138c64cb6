"""A JournalNode of another cluster is a stranger, and three learners have one way to votes."""

import shutil
from pathlib import Path

import pytest

from journal.cli.strangers import lacks_founders, own, strangers, voters
from journal.errors import JournalError, Unavailable
from journal.model import NodeName
from journal.proto import journal_pb2 as pb
from tests.ha.cli.schema import faults
from tests.journal.cli.test_commands import write
from tests.journal.cli.test_status_schema import SCHEMA
from tests.journal.reader.test_verify import run, told_by
from tests.journal.writer.journal_cluster import Nodes

OURS, THEIRS = "voter of CID-1", "voter of CID-2"
LEARNER, THEIR_LEARNER = "learner of CID-1", "learner of CID-2"
SAME_CLUSTER = "voter of CID-1, another namespace"
ANSWERS: dict[str, pb.JournalStatus | JournalError] = {
    "silent": Unavailable("no answer"),
    "bare": pb.JournalStatus(is_formatted=False),
    "stopped": pb.JournalStatus(is_formatted=True, failed_because="disk full"),
}
for name, learner, cluster, namespace in (
    (OURS, False, "CID-1", 1), (THEIRS, False, "CID-2", 2), (LEARNER, True, "CID-1", 1),
    (THEIR_LEARNER, True, "CID-2", 2), (SAME_CLUSTER, False, "CID-1", 3),
):  # fmt: skip
    space = pb.NamespaceInfo(cluster_id=cluster, namespace_id=namespace)
    ANSWERS[name] = pb.JournalStatus(is_formatted=True, is_learner=learner, namespace_info=space)
CASES: dict[str, tuple[list[str], list[int], int, bool]] = {
    "all are ours": ([OURS, OURS, LEARNER], [], 2, False),
    "one of another cluster": ([OURS, OURS, THEIRS], [2], 2, False),
    "one of another namespace": ([SAME_CLUSTER, OURS, OURS], [0], 2, False),
    "a learner of another cluster": ([OURS, OURS, THEIR_LEARNER], [2], 2, False),
    "one voter outweighs two learners": ([OURS, THEIR_LEARNER, THEIR_LEARNER], [1, 2], 1, False),
    "one each": ([OURS, THEIRS, "silent"], [], 2, False),
    "a learner and a voter": ([OURS, THEIR_LEARNER, "silent"], [1], 1, False),
    "learners only": ([LEARNER, LEARNER, LEARNER], [], 0, True),
    "learners of two clusters": ([LEARNER, LEARNER, THEIR_LEARNER], [2], 0, False),
    "learners, one silent": ([LEARNER, LEARNER, "silent"], [], 0, False),
    "learners, one bare": ([LEARNER, LEARNER, "bare"], [], 0, False),
    "nothing is there": (["bare", "stopped", "silent"], [], 0, False),
    "none": ([], [], 0, False),
}


@pytest.mark.parametrize("case", CASES)
def test_strangers_voters_and_founders(case: str) -> None:
    kinds, strange, votes, founding = CASES[case]
    answers = {NodeName(f"jn{i}:1"): ANSWERS[kind] for i, kind in enumerate(kinds)}
    assert list(strangers(answers)) == [f"jn{i}:1" for i in strange]
    assert len(voters(own(answers))) == votes
    assert lacks_founders(answers) is founding


@pytest.mark.parametrize("copied", [False, True], ids=["a voter's folder", "a copied folder"])
async def test_a_node_of_another_cluster_takes_no_part(
    nodes: Nodes, tmp_path: Path, *, copied: bool
) -> None:
    await write(nodes)
    await nodes.stop(2)
    version = nodes.current(2) / "VERSION"
    version.write_text(version.read_text().replace("clusterID=", "clusterID=CID-other-"))
    if copied:
        shutil.copytree(nodes.current(2).parent, tmp_path / "kept")
        shutil.rmtree(nodes.current(2).parent)
        shutil.copytree(tmp_path / "kept", nodes.current(2).parent)
    await nodes.start(2)
    document = told_by(await run(nodes, tmp_path, "status", "-o", "json"))
    assert faults(SCHEMA, document) == []
    rows = document["nodes"]
    assert [row["state"] for row in rows] == ["in sync", "in sync", "stranger"]
    assert [row["learner"] for row in rows] == [False, False, copied]
    assert [row["behind"] for row in rows] == [0, 0, None]
    text = (await run(nodes, tmp_path, "status")).output
    assert "a stranger: it keeps the journal of cluster CID-other-" in text
    assert f"nnha journal format --node {nodes.name(2)}" in text
    assert "a learner" not in text
    assert "2 of 3 nodes serve and vote; the quorum could lose no more node" in text
    listed = told_by(await run(nodes, tmp_path, "segments", "-o", "json"))
    assert "a stranger" in listed["unreachable"][nodes.name(2)]
    assert not listed["learners"]
    assert all(len(row["copies"]) == 2 for row in listed["segments"])


async def test_learners_alone_are_shown_the_way_to_their_first_votes(
    nodes: Nodes, tmp_path: Path
) -> None:
    await write(nodes)
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / "incarnation").unlink()
    await nodes.start(0, 1)
    with_one_down = (await run(nodes, tmp_path, "status")).output
    assert "--founding" not in with_one_down, "the third may have a vote"
    assert "until an active NameNode's writer admits it" in with_one_down
    await nodes.start(2)
    for words in (("status",), ("recover", "--dry-run")):
        said = (await run(nodes, tmp_path, *words)).output
        assert "`nnha journal admit --founding`" in said
        assert "Start more nodes" not in said
        assert "an active NameNode's writer" not in said
    with pytest.raises(JournalError, match="nnha journal admit --founding gives the first votes"):
        await nodes.writer().become_writer()
