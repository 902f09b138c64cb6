"""The command line of ``nnha namenode``: spellings, refusals, exit codes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ha.rpc.server import RpcServer
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ServiceState, ServiceStatus
from namenode_sim.process.command import namenode
from namenode_sim.startup.modes import NOT_BUILT
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.startup.startup_world import OPEN, World, in_use, snapshot, world
from tests.worlds.files import info, write_segment

LAST = 27


@pytest.mark.parametrize("spelling", NOT_BUILT)
def test_what_is_not_built_is_refused_with_advice(spelling: str) -> None:
    for given in ([spelling], [spelling, "started", "-clusterid", "CID-x"]):
        result = CliRunner().invoke(namenode, given[: 1 if spelling != "-rollingUpgrade" else 4])
        assert result.exit_code == 1
        assert f"{spelling} is not implemented in nnha. {NOT_BUILT[spelling]}" in result.output


def test_two_modes_at_once_are_wrong_usage() -> None:
    result = CliRunner().invoke(namenode, ["-format", "--bootstrap-standby"])
    assert result.exit_code == 2
    assert "--format and --bootstrap-standby cannot be given together" in result.output


def test_a_new_cluster_id_needs_no_configuration() -> None:
    result = CliRunner().invoke(namenode, ["-genclusterid"])
    assert result.exit_code == 0
    first, cluster_id = result.output.splitlines()
    assert first == "Generating new cluster id:"
    assert cluster_id.startswith("CID-")
    assert len(cluster_id) == 40


async def test_metadata_version_prints_as_hadoop_does(at: World) -> None:
    in_use(at.name_dir, info(layout=-60))
    code, out = await at.command("-metadataVersion")
    assert (code, out) == (0, "HDFS Image Version: -60\nSoftware format version: -65\n")


async def test_initializing_asks_and_tells(tmp_path: Path) -> None:
    spelling = "-initializeSharedEdits"
    async with world(tmp_path) as at:
        in_use(at.name_dir)
        code, out = await at.command(spelling)
        assert code == 0, out
        assert f"the journal ns1 holds the edits 1 to {LAST} in 2 segments" in out
        before = snapshot(at.name_dir)
        for answer, flags in (("", ()), ("y\n", ("-nonInteractive",))):
            code, out = await at.command(spelling, *flags, stdin=answer)
            assert (code, "nothing was changed" in out) == (1, True)
        code, out = await at.command(spelling, stdin="maybe\ny\n")
        assert code == 0, out
        assert "Please answer Y or N." in out
        assert snapshot(at.name_dir) == before


async def test_formatting_by_force_spares_the_journal_of_a_namenode_that_runs(
    at: World, tmp_path: Path
) -> None:
    """See its lock before the journal is erased under it, not after."""
    code, out = await at.command("-format")
    assert code == 0, out
    storage = open_name_dirs([at.name_dir])
    before = snapshot(tmp_path)
    code, out = await at.command("-format", "-force")
    assert (code, "is locked by" in out, "Nothing was changed" in out) == (1, True, True), out
    assert snapshot(tmp_path) == before
    storage.close()


async def test_formatting_leaves_no_edits_of_the_file_system_before(tmp_path: Path) -> None:
    """They would be taken for the new one's: their files have the same names."""
    edits = tmp_path / "edits"
    (edits / "current").mkdir(parents=True)
    write_segment(edits / "current", 1, OPEN)
    async with world(tmp_path, **{"dfs.namenode.edits.dir": str(edits)}) as at:
        before = snapshot(tmp_path)
        code, out = await at.command("-format", "-nonInteractive")
        assert (code, f"{edits} holds a file system" in out) == (1, True), out
        assert snapshot(tmp_path) == before
        code, out = await at.command("-format", "-force")
        assert code == 0, out
        assert not (edits / "current").exists()


async def test_formatting_is_refused_while_another_namenode_is_active(tmp_path: Path) -> None:
    class Active:
        async def status(self) -> ServiceStatus:
            return ServiceStatus(ServiceState.ACTIVE, ready_to_become_active=True)

    server = RpcServer([ha_service_protocol(Active())])  # type: ignore[arg-type]
    port = await server.start("127.0.0.1", 0)
    try:
        peer = {"dfs.namenode.rpc-address.ns1.nn2": f"127.0.0.1:{port}"}
        async with world(tmp_path, **peer) as at:
            before = snapshot(tmp_path)
            code, out = await at.command("-format", "-force")
            assert code == 1, out
            assert "a NameNode of ns1 is active" in out
            assert "nothing was changed" in out
            assert snapshot(tmp_path) == before
    finally:
        await server.stop()


async def test_formatting_where_nothing_can_be_written_leaves_the_journal(
    at: World, tmp_path: Path
) -> None:
    at.name_dir.write_text("in the way")
    before = snapshot(tmp_path)
    code, out = await at.command("-format", "-force")
    assert (code, "Traceback" in out) == (1, False), out
    assert "cannot be used" in out
    assert "Nothing was changed" in out
    assert snapshot(tmp_path) == before


async def test_bootstrap_without_a_peer_ends_with_2(at: World) -> None:
    code, out = await at.command("-bootstrapStandby")
    assert (code, "no other NameNode answers" in out) == (2, True)


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        (
            "dfs.namenode.support.allow.format",
            "false",
            "dfs.namenode.support.allow.format is false",
        ),
        ("dfs.reformat.disabled", "true", "dfs.reformat.disabled is true and"),
    ],
)
async def test_formatting_that_is_forbidden_is_not_done_even_by_force(
    tmp_path: Path, key: str, value: str, word: str
) -> None:
    async with world(tmp_path, **{key: value}) as at:
        in_use(at.name_dir)
        before = snapshot(at.name_dir)
        code, out = await at.command("-format", "-force")
        assert (code, word in out) == (1, True), out
        assert snapshot(at.name_dir) == before


async def test_a_damaged_directory_is_told_with_file_offset_and_transaction(at: World) -> None:
    in_use(at.name_dir)
    (segment,) = (at.name_dir / "current").glob("edits_0*-*")
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    segment.write_bytes(data)
    code, out = await at.command("--initialize-shared-edits")
    assert code == 1
    last_line = out.strip().splitlines()[-1]
    assert f"{segment}, offset 25, transaction 2: the checksum is wrong" in last_line


@pytest.mark.parametrize("layout", ["-65", "-66"])
async def test_a_file_system_is_formatted_in_the_layout_that_is_configured(
    tmp_path: Path, layout: str
) -> None:
    async with world(tmp_path, **{"nnha.namenode.format-layout-version": layout}) as at:
        code, out = await at.command("-format", "-force")
        assert code == 0, out
        assert f"layoutVersion={layout}\n" in (at.name_dir / "current/VERSION").read_text()
