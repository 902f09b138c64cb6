"""docs/disasters.md, row by row, on real processes under certificates."""

import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from deploy.local.cluster.certificates import authority_folder, tls_folder
from deploy.local.cluster.cluster import ZOOKEEPER, Cluster, zkfc_of
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.state import status
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from ha.conf.keys.security import TLS_DIR
from namenode_sim.image.reader import load_image
from spark.backup.create import verify
from tests import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

COMMAND_SECONDS = 60.0
ZKFCS = tuple(map(zkfc_of, NAMENODES))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield one cluster for all rows, since a start takes seconds."""
    directory = tmp_path_factory.mktemp("disasters")
    screen = Screen(Console(stderr=True, width=200))
    with staged(directory, screen, datanodes=1, secure=True) as stage:
        yield stage


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """Return the same cluster, whole again."""
    shared.cluster.heal()
    return shared


def nnha(
    cluster: Cluster, *arguments: str, as_namenode: str = "", code: int = 0, conf: bool = True
) -> str:
    """Return what a command prints; it must end with that code."""
    own: tuple[str, ...] = ()
    if as_namenode:
        tls = f"{TLS_DIR.name}={tls_folder(cluster.layout, as_namenode)}"
        own = ("-D", f"dfs.ha.namenode.id={as_namenode}", "-D", tls)
    command = cluster.command(*arguments)
    words: Sequence[str] = command
    if arguments[0] == "backup":
        at = command.index("--conf-dir")
        given, rest = command[at : at + 2], command[at + 2 :]
        words = [*command[:at], *rest, *(given if conf else ())]
    done = subprocess.run(
        [*words, *own], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def made(stage: Stage, folder: Path, *more: str) -> str:
    """Make a backup and return its name."""
    said = nnha(stage.cluster, "backup", "create", "--dir", str(folder), *more)
    assert f"{folder}/backup-" in said
    return max(path.name for path in folder.iterdir())


def acknowledged(stage: Stage, name: str) -> set[str]:
    """Write a few edits and return what must be there afterwards."""
    paths = {f"/{name}/{number}" for number in range(5)}
    for path in paths:
        stage.client.mkdirs(path)
    return paths


def there(stage: Stage, root: str) -> set[str]:
    return {path.removeprefix("hdfs://ns1") for path in stage.client.tree(root).directories}


def stop(stage: Stage, *names: str) -> None:
    stage.cluster.supervisor.stop_together(names)


def test_a_backup_is_sealed_listed_verified_and_never_half_there(
    stage: Stage, tmp_path: Path
) -> None:
    paths = acknowledged(stage, "sealed")
    folder = tmp_path / "backups"
    name = made(stage, folder)
    place = ("--dir", str(folder))
    assert "whole" in nnha(stage.cluster, "backup", "list", *place, conf=False)
    assert "is sound" in nnha(stage.cluster, "backup", "verify", *place, name, conf=False)
    manifest, namespace = verify(folder / name)
    assert all(namespace.tree.find(path) for path in paths)
    assert manifest.last_txid == namespace.last_applied > manifest.image_txid
    assert set(folder.iterdir()) == {folder / name}
    assert {path.stat().st_mode & 0o077 for path in (folder / name).iterdir()} == {0}
    nnha(stage.cluster, "backup", "create", *place, "--authority", str(tmp_path), code=4)
    assert set(folder.iterdir()) == {folder / name}
    refused = nnha(stage.cluster, "backup", "restore", *place, name, as_namenode="nn1", code=3)
    assert "is locked by" in refused


def test_an_image_is_fetched_by_a_certificate_and_by_nothing_else(stage: Stage) -> None:
    """Hadoop's ``-fetchImage`` has none; the page says what to ask for instead."""
    layout, active = stage.cluster.layout, stage.cluster.wait_for_active()
    (path,) = re.findall(r"https://NAMENODE:9870(/[^']+)", (ROOT / "docs/disasters.md").read_text())
    url = f"https://127.0.0.1:{layout.namenodes[active].http}{path}"
    folder = tls_folder(layout, "admin")
    bare = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, context=bare, timeout=COMMAND_SECONDS)
    # 401 from another host; on this one the kernel says who calls, and a client may not.
    refused.value.close()
    assert refused.value.code == 403
    certified = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    certified.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with urllib.request.urlopen(url, context=certified, timeout=COMMAND_SECONDS) as answer:
        fetched = answer.read()
    images = (layout.name_dir(active) / "current").glob("fsimage_*")
    newest = max(one for one in images if not one.suffix)
    assert fetched == newest.read_bytes()


def test_the_newest_image_is_damaged(stage: Stage) -> None:
    paths = acknowledged(stage, "image")
    cluster, hurt = stage.cluster, stage.cluster.wait_for_active()
    stop(stage, zkfc_of(hurt), hurt)
    current = cluster.layout.name_dir(hurt) / "current"
    image = max(path for path in current.glob("fsimage_*") if not path.suffix)
    content = bytearray(image.read_bytes())
    content[len(content) // 2] ^= 0x40
    image.write_bytes(content)
    cluster.wait_for_active()
    process = cluster.launch(hurt)
    assert process.wait(COMMAND_SECONDS) == 78
    assert "corrupt" in process.log_tail()
    nnha(cluster, "namenode", "--bootstrap-standby", "--force", as_namenode=hurt)
    cluster.heal()
    assert paths <= there(stage, "/image")


def test_the_name_directories_of_one_namenode_are_lost(stage: Stage) -> None:
    paths = acknowledged(stage, "one")
    cluster, lost = stage.cluster, stage.cluster.wait_for_active()
    stop(stage, zkfc_of(lost))
    cluster.kill(lost)
    shutil.rmtree(cluster.layout.name_dir(lost))
    cluster.wait_for_active()
    nnha(cluster, "namenode", "--bootstrap-standby", "--non-interactive", as_namenode=lost)
    cluster.heal()
    assert paths <= there(stage, "/one")


def test_the_name_directories_of_both_are_lost_and_the_journal_is_not(
    stage: Stage, tmp_path: Path
) -> None:
    before = acknowledged(stage, "both")
    name = made(stage, tmp_path)
    after = acknowledged(stage, "both-after")
    cluster = stage.cluster
    stop(stage, *ZKFCS)
    for namenode in NAMENODES:
        cluster.kill(namenode)
        shutil.rmtree(cluster.layout.name_dir(namenode))
    restore = ("backup", "restore", "--dir", str(tmp_path), name, "--keep-journal")
    said = nnha(cluster, *restore, as_namenode="nn1")
    assert "no edit is lost" in said
    cluster.start("nn1")
    cluster.start("zkfc-nn1")
    cluster.wait_for_active()
    nnha(cluster, "namenode", "--bootstrap-standby", "--non-interactive", as_namenode="nn2")
    cluster.heal()
    assert before | after <= there(stage, "/both") | there(stage, "/both-after")


def test_the_disks_of_two_journalnodes_are_lost(stage: Stage) -> None:
    paths = acknowledged(stage, "journal")
    cluster = stage.cluster
    active = cluster.wait_for_active()
    stop(stage, *ZKFCS)
    for name in JOURNALNODES[:2]:
        cluster.kill(name)
        shutil.rmtree(cluster.layout.edits_dir(name))
    stop(stage, *NAMENODES, JOURNALNODES[2])
    left = cluster.layout.edits_dir(JOURNALNODES[2])
    kept = left.with_name(f"{left.name}.kept")
    left.rename(kept)
    current = cluster.layout.name_dir(active) / "current"
    for path in (kept / "ns1" / "current").glob("edits_*"):
        if not (current / path.name).exists():
            shutil.copy(path, current)
    for name in JOURNALNODES:
        cluster.start(name)
    nnha(cluster, "namenode", "--initialize-shared-edits", as_namenode=active)
    cluster.heal()
    assert paths <= there(stage, "/journal")


def test_all_is_lost_and_what_came_after_the_backup_with_it(stage: Stage, tmp_path: Path) -> None:
    before = acknowledged(stage, "all")
    cluster, files = stage.cluster, stage.client.files()
    files.write("/all/file", [b"old"], block_size=1 << 20)
    if cluster.wait_for_active() == "nn1":
        nnha(cluster, "switchover", "nn2", "--yes")
    name = made(stage, tmp_path)
    last = verify(tmp_path / name)[0].last_txid
    files.write("/all-after", [b"lost"], block_size=1 << 20)
    for number in range(50):
        stage.client.mkdirs(f"/all-more/{number}")
    # The DataNode obeys nn2, with more transactions than nn1 has at first once it is restored.
    wait_until(
        lambda: _highest_claim(cluster) > last + 50, what="a newer claim", deadline_seconds=60.0
    )
    stop(stage, *ZKFCS, *NAMENODES, *JOURNALNODES)
    for namenode in NAMENODES:
        shutil.rmtree(cluster.layout.name_dir(namenode))
    for node in JOURNALNODES:
        shutil.rmtree(cluster.layout.edits_dir(node))
        cluster.start(node)
    restore = ("backup", "restore", "--dir", str(tmp_path), name)
    said = nnha(cluster, *restore, as_namenode="nn1")
    assert f"up to transaction {last}; edits behind it are lost" in said
    refused = nnha(cluster, *restore, as_namenode="nn1", code=3)
    assert "the journal on" in refused
    cluster.start("nn1")
    cluster.start("zkfc-nn1")
    cluster.wait_for_active()
    nnha(cluster, "namenode", "--bootstrap-standby", "--non-interactive", as_namenode="nn2")
    cluster.heal()
    files.write("/all/new", [b"news"], block_size=1 << 20)
    assert stage.client.read("/all/new") == b"news"
    assert stage.client.read("/all/file") == b"old"
    assert before <= there(stage, "/all")
    assert not {"/all-after", "/all-more"} & there(stage, "/")


def _highest_claim(cluster: Cluster) -> int:
    facts = status(cluster.layout.url("dn1"))
    found = facts and facts["highest_claim"]
    return found if isinstance(found, int) else -1


def test_the_data_of_zookeeper_is_lost(stage: Stage, tmp_path: Path) -> None:
    paths = acknowledged(stage, "zookeeper")
    cluster = stage.cluster
    nnha(cluster, "pause", "--for", "1h", "--reason", "disaster")
    name = made(stage, tmp_path)
    part = ("backup", "restore", "--dir", str(tmp_path), name, "--part", "znodes")
    assert "is held" in nnha(cluster, *part, code=8)
    stop(stage, *ZKFCS, ZOOKEEPER)
    shutil.rmtree(cluster.layout.directory / "data" / ZOOKEEPER)
    cluster.start(ZOOKEEPER)
    said = nnha(cluster, *part)
    assert "NnhaPause" in said
    assert "NnhaActiveTerm" not in said
    nnha(cluster, "resume")
    cluster.heal()
    assert paths <= there(stage, "/zookeeper")


def test_the_key_of_the_authority_is_lost(stage: Stage, tmp_path: Path) -> None:
    cluster = stage.cluster
    authority, kept = authority_folder(cluster.layout), tmp_path / "kept"
    name = made(stage, tmp_path / "backups", "--authority", str(authority))
    shutil.copytree(authority, kept)
    (authority / "ca.key").unlink()
    place = ("--dir", str(tmp_path / "backups"), name, "--part", "authority", "--authority")
    try:
        back = tmp_path / "back"
        nnha(cluster, "backup", "restore", *place, str(back))
        assert {one.name: one.read_bytes() for one in back.iterdir()} == {
            one.name: one.read_bytes() for one in kept.iterdir()
        }
        assert "not empty" in nnha(cluster, "backup", "restore", *place, str(back), code=8)
    finally:
        shutil.copy(kept / "ca.key", authority / "ca.key")


def test_something_was_deleted_by_mistake(stage: Stage, tmp_path: Path) -> None:
    cluster, client = stage.cluster, stage.client
    paths = acknowledged(stage, "mistake")
    files = client.files()
    files.write("/mistake/file", [b"precious"], block_size=1 << 20)
    client.on_files(lambda fs: fs.allowSnapshot(client.path("/mistake")))
    client.on_files(lambda fs: fs.createSnapshot(client.path("/mistake"), "daily"))
    assert files.delete("/mistake/file")
    assert client.read("/mistake/.snapshot/daily/file") == b"precious"
    name = made(stage, tmp_path)
    assert files.delete("/mistake/0")
    backup, beside = str(tmp_path / name), str(tmp_path / "beside")
    merge = ("merge", "--image", backup, "--edits", backup, "--out", beside)
    done = subprocess.run(
        [*cluster.command("checkpoint")[:-2], *merge],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    image = max(path for path in Path(beside).glob("fsimage_*") if not path.suffix)
    assert load_image(image).tree.find("/mistake/0")
    assert "/mistake/0" in paths - there(stage, "/mistake")
