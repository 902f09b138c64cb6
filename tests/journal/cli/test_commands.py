"""``nnha journal`` status, segments, verify, recover and format against real nodes."""

import asyncio
import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from journal.cli.group import journal
from journal.model import TxId
from tests.ha.cli.schema import faults
from tests.journal.node.process import until
from tests.journal.reader.test_verify import run, told_by
from tests.journal.writer import journal_cluster
from tests.journal.writer.journal_cluster import NAMESPACE, Nodes, edits

NODE_KEYS = {
    "node", "reachable", "reason", "state", "formatted", "promised_epoch", "writer_epoch",
    "last_txid", "committed_txid", "behind", "open_segment", "via", "write_lanes",
    "learner", "incarnation",
    "damaged_segments", "failed_because", "disk_free_bytes", "disk_total_bytes", "disk_warning",
}  # fmt: skip


async def write(nodes: Nodes) -> None:
    """1-3 finalized, 4-5 left open."""
    writer = nodes.writer()
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 2, edits(4, 5))
    await writer.settle(timeout_seconds=30)
    await writer.close()


async def test_status_has_the_same_keys_whether_a_node_answers_or_not(
    nodes: Nodes, tmp_path: Path
) -> None:
    await write(nodes)
    well = await run(nodes, tmp_path, "status", "-o", "json")
    assert well.exit_code == 0, well.output
    assert [row["state"] for row in told_by(well)["nodes"]] == ["in sync"] * 3
    await nodes.stop(2)
    rows = told_by(await run(nodes, tmp_path, "status", "-o", "json"))["nodes"]
    assert all(set(row) == NODE_KEYS for row in rows)
    assert rows[2]["state"] == "down"
    text = (await run(nodes, tmp_path, "status")).output
    headings = "node state promised writer last txid committed behind open via free"
    assert headings.split() in [line.split() for line in text.splitlines()]
    assert "2 of 3 nodes serve and vote; the quorum could lose no more node" in text


async def test_segments_show_who_holds_what(nodes: Nodes, tmp_path: Path) -> None:
    await write(nodes)
    result = await run(nodes, tmp_path, "segments", "-o", "json")
    assert result.exit_code == 0, result.output
    first, second = told_by(result)["segments"]
    assert [copy["finalized"] for copy in first["copies"]] == [True] * 3
    assert len({copy["digest"] for copy in first["copies"]}) == 1
    assert (second["first_txid"], second["last_txid"]) == (4, 5)
    text = await run(nodes, tmp_path, "segments")
    assert "1-3" in text.output
    assert text.exit_code == 0


async def test_a_shallow_verification_reads_lists_only(nodes: Nodes, tmp_path: Path) -> None:
    await write(nodes)
    result = await run(nodes, tmp_path, "verify", "-o", "json")
    assert (result.exit_code, told_by(result)["deep"]) == (0, False)
    await nodes.stop(0, 1)
    assert (await run(nodes, tmp_path, "verify")).exit_code == 6


async def test_a_dry_run_tells_the_choice_and_changes_nothing(nodes: Nodes, tmp_path: Path) -> None:
    await write(nodes)
    before = told_by(await run(nodes, tmp_path, "status", "-o", "json"))
    result = await run(nodes, tmp_path, "recover", "--dry-run", "-o", "json")
    assert result.exit_code == 0, result.output
    told = told_by(result)
    assert (told["outcome"], told["segment_first_txid"], told["chosen_last_txid"]) == (
        "copies",
        4,
        5,
    )
    assert sorted(told["sources"]) == sorted(nodes.name(i) for i in range(3))
    text = await run(nodes, tmp_path, "recover", "--dry-run")
    assert "recovery would choose 4-5" in text.output
    after = told_by(await run(nodes, tmp_path, "status", "-o", "json"))
    assert [row["promised_epoch"] for row in before["nodes"]] == [
        row["promised_epoch"] for row in after["nodes"]
    ]
    assert await nodes.recover() == (2, 5)


async def test_recovering_by_hand_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    result = await run(nodes, tmp_path, "recover")
    assert result.exit_code == 3
    assert "REFUSED (nothing was changed)" in result.output
    await nodes.stop(0, 1)
    assert (await run(nodes, tmp_path, "recover", "--dry-run")).exit_code == 6


NOT_DONE = {
    "recover": ("recover", (), 3, "JOURNAL_REFUSED"),
    "a stranger": ("format --node jn9:1", (), 3, "JOURNAL_REFUSED"),
    "votes": ("admit", (), 3, "JOURNAL_REFUSED"),
    "no VERSION": ("format --version-file VERSION", (), 1, "JOURNAL_REFUSED"),
    "a silent node": ("admit --founding", (1,), 6, "NO_ANSWER"),
    "no quorum": ("verify", (0, 1), 6, "NO_ANSWER"),
    "no quorum for the bytes": ("verify --deep", (0, 1), 6, "NO_ANSWER"),
    "no nameservice": ("status -D dfs.nameservices=", (), 2, "BAD_CONFIGURATION"),
}


@pytest.mark.parametrize(
    ("command", "stopped", "exit_code", "code"), NOT_DONE.values(), ids=NOT_DONE
)
async def test_what_is_not_done_is_told_to_programs_in_one_document_with_the_exit_code(
    nodes: Nodes, tmp_path: Path, command: str, stopped: tuple[int, ...], exit_code: int, code: str
) -> None:
    (tmp_path / "VERSION").touch()
    await nodes.stop(*stopped) if stopped else None
    words = [str(tmp_path / word) if word == "VERSION" else word for word in command.split()]
    text = await run(nodes, tmp_path, *words)
    result = await run(nodes, tmp_path, *words, "-o", "json")
    assert "Error: " not in result.output
    assert "REFUSED" not in result.stderr
    told = told_by(result)
    assert faults("ending", told) == []
    assert (told["command"], told["code"]) == (f"journal {words[0]}", code)
    assert (text.exit_code, result.exit_code, told["exit_code"]) == (exit_code,) * 3
    assert told["message"] in text.output
    for reason in told["reasons"]:
        assert f"  {reason['node']}  {reason['text']}" in text.output


async def test_a_file_that_is_no_version_is_told_by_what_it_lacks(
    nodes: Nodes, tmp_path: Path
) -> None:
    (tmp_path / "VERSION").touch()
    result = await run(nodes, tmp_path, "format", "--version-file", str(tmp_path / "VERSION"))
    assert "VERSION is no VERSION file of a NameNode: it lacks layoutVersion" in result.output


async def test_format_refuses_what_holds_edits_and_what_is_not_all_there(tmp_path: Path) -> None:
    version = tmp_path / "VERSION"
    version.write_text(
        f"layoutVersion={NAMESPACE.layout_version}\nnamespaceID={NAMESPACE.namespace_id}\n"
        f"clusterID={NAMESPACE.cluster_id}\ncTime=0\nblockpoolID=my-bp\n"
    )
    nodes = Nodes(tmp_path)
    try:
        await nodes.start()
        unknown = await run(nodes, tmp_path, "format")
        assert unknown.exit_code == 3
        assert "-initializeSharedEdits" in unknown.output
        await nodes.stop(2)
        missing = await run(nodes, tmp_path, "format", "--version-file", str(version))
        assert missing.exit_code == 6
        assert nodes.name(2) in missing.output
        await nodes.start(2)
        done = await run(nodes, tmp_path, "format", "--version-file", str(version))
        assert done.exit_code == 0, done.output
        await write(nodes)
        again = await run(nodes, tmp_path, "format", "--version-file", str(version))
        assert again.exit_code == 3
        assert "holds edits up to 5, promised 1" in again.output
        version.write_text(version.read_text().replace("mycluster", "other"))
        foreign = await run(nodes, tmp_path, "format", "--version-file", str(version), "--force")
        assert foreign.exit_code == 3
        assert "not even by force" in foreign.output
        stranger = await run(nodes, tmp_path, "format", "--node", "jn9:1")
        assert stranger.exit_code == 3
    finally:
        await nodes.stop()


async def test_a_node_formatted_alone_is_a_learner_and_the_journal_keeps_its_voters(
    nodes: Nodes, tmp_path: Path
) -> None:
    await write(nodes)
    await nodes.stop(1)
    shutil.rmtree(nodes.current(1).parent)
    await nodes.start(1)
    before = told_by(await run(nodes, tmp_path, "status", "-o", "json"))["nodes"]
    assert [row["state"] for row in before] == ["in sync", "not formatted", "in sync"]
    told = (await run(nodes, tmp_path, "status")).output
    assert f"next: nnha journal format --node {nodes.name(1)}" in told
    assert "initialize" not in told
    made = await run(nodes, tmp_path, "format", "--node", nodes.name(1))
    assert made.exit_code == 0, made.output
    rows = told_by(await run(nodes, tmp_path, "status", "-o", "json"))["nodes"]
    assert [row["learner"] for row in rows] == [False, True, False]
    refused = await run(nodes, tmp_path, "admit", "--founding")
    assert refused.exit_code == 3
    assert f"{nodes.name(0)}  votes already" in refused.output
    # Folders that were copied make learners that hold something: shown, and not counted.
    await copy_folder(nodes)
    await nodes.start(0, 1)
    shown = await run(nodes, tmp_path, "segments", "-o", "json")
    told = told_by(shown)
    for row in told["segments"]:
        assert nodes.name(1) in [copy["node"] for copy in row["copies"]]
    assert told["unreachable"] == {}
    assert [row["node"] for row in told["learners"]] == [nodes.name(1)]
    assert shown.exit_code == 0


async def copy_folder(nodes: Nodes) -> None:
    """Give node 1 the folder of node 0; both are stopped."""
    await nodes.stop(0, 1)
    shutil.rmtree(nodes.current(1).parent)
    shutil.copytree(nodes.current(0).parent, nodes.current(1).parent)


async def a_learner_with_other_edits(nodes: Nodes) -> None:
    """Node 1 has node 0's folder, with another byte in 1-3, and lost 4-5."""
    await until(lambda: nodes.finalized(0) == [(1, 3), (4, 5)], "node 0 has finalized both")
    await copy_folder(nodes)
    final = nodes.current(1) / f"edits_{1:019d}-{3:019d}"
    final.write_bytes(final.read_bytes()[:8] + edits(1, 3, "others"))
    (nodes.current(1) / f"segments/{1}").unlink()
    await nodes.start(0, 1)


@pytest.mark.parametrize("how", [[], ["--deep"]], ids=["shallow", "deep"])
async def test_a_verification_shows_learners_and_does_not_count_them(
    nodes: Nodes, tmp_path: Path, how: list[str]
) -> None:
    await write(nodes)
    await nodes.recover()
    await a_learner_with_other_edits(nodes)
    result = await run(nodes, tmp_path, "verify", *how, "-o", "json")
    assert result.exit_code == 0, result.output
    told = told_by(result)
    (learner,) = told["learners"]
    assert (learner["node"], learner["differing_segments"]) == (nodes.name(1), [1])
    assert told.get("unreachable", {}) == {}
    assert nodes.name(1) not in [row["node"] for row in told.get("nodes", ())]
    text = await run(nodes, tmp_path, "verify", *how)
    assert f"{nodes.name(1)}: a learner, which is not counted" in text.output
    assert "has other edits in those at 1" in text.output
    await nodes.stop(2)
    assert (await run(nodes, tmp_path, "verify", *how)).exit_code == 6


async def test_a_journal_without_a_voter_is_founded_by_an_operators_word(
    nodes: Nodes, tmp_path: Path
) -> None:
    """Import copies of every folder, so that no node knows what its original promised."""
    await write(nodes)
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / "incarnation").unlink()
    await nodes.start()
    assert (await run(nodes, tmp_path, "status")).exit_code == 6
    silent = await run(nodes, tmp_path, "admit")
    assert silent.exit_code == 3
    assert "--founding" in silent.output
    await nodes.stop(2)
    assert (await run(nodes, tmp_path, "admit", "--founding")).exit_code == 6
    await nodes.start(2)
    done = await run(nodes, tmp_path, "admit", "--founding")
    assert done.exit_code == 0, done.output
    assert "edits up to 5, promised 1" in done.output
    assert await nodes.recover() == (2, 5)


@pytest.mark.parametrize("name", ["status", "segments", "verify", "recover", "format", "admit"])
async def test_every_command_explains_itself(name: str) -> None:
    result: Result = await asyncio.to_thread(CliRunner().invoke, journal, [name, "--help"])
    assert result.exit_code == 0
    assert "Exit status" in result.output


async def test_nodes_that_are_out_of_sync_do_not_count_as_spare(
    nodes: Nodes, tmp_path: Path
) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await nodes.stop(2)
    await journal_cluster.write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 2, edits(4, 5))
    await writer.close()
    await nodes.start(2)
    text = (await run(nodes, tmp_path, "status")).output
    assert "could lose 0 more at once, and 1 when" in text
    assert "-rollEdits" in text


COMMANDS_THAT_ASK = [
    "status", "segments", "verify", "admit", "format --version-file VERSION", "recover --dry-run",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS_THAT_ASK)
async def test_each_command_waits_as_long_as_it_is_told(
    nodes: Nodes, tmp_path: Path, command: str
) -> None:
    """Let one node take connections and answer nothing."""
    version = tmp_path / "VERSION"
    shutil.copy(nodes.current(0) / "VERSION", version)
    await nodes.stop(1)
    with socket.create_server(nodes.addresses[1]):
        told = command.replace("VERSION", str(version)).split()
        result = await run(nodes, tmp_path, *told, "--timeout", "0.75")
    assert "in 0.75 s" in result.output, result.output
