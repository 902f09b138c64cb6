"""A backup that is damaged in any file, by any kind of damage, is never taken for a whole one."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from journal.model import NamespaceInfo
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.version_file import version_text
from spark.backup.create import seal, verify
from spark.backup.folder import existing, publish, room_in, why_not_whole
from spark.backup.model import MANIFEST, VERSION, BackupError

INFO = NamespaceInfo(
    layout_version=-66, namespace_id=7, cluster_id="CID-a", ctime=0, block_pool_id="BP-1"
)
IMAGE = f"fsimage_{0:019d}"


def backup_in(folder: Path) -> Path:
    with room_in(folder) as room:
        save_image(Namespace.empty("hdfs"), room / IMAGE, INFO)
        (room / VERSION).write_bytes(version_text(INFO, comment="a test"))
        name, _ = seal(room, "ns1")
        return publish(room, name)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _other_cluster(backup: Path) -> None:
    text = (backup / MANIFEST).read_text()
    (backup / MANIFEST).write_text(text.replace("CID-a", "CID-b"))


def _elsewhere(backup: Path) -> None:
    text = (backup / MANIFEST).read_text()
    (backup / MANIFEST).write_text(text.replace('"VERSION"', '"../VERSION"'))


def _newer_format(backup: Path) -> None:
    text = (backup / MANIFEST).read_text()
    (backup / MANIFEST).write_text(text.replace('"format": 1', '"format": 2'))


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "a bit of the image": lambda backup: _flip(backup / IMAGE),
    "a bit of VERSION": lambda backup: _flip(backup / VERSION),
    "no image": lambda backup: (backup / IMAGE).unlink(),
    "no digest of the image": lambda backup: (backup / f"{IMAGE}.md5").unlink(),
    "no manifest": lambda backup: (backup / MANIFEST).unlink(),
    "half a manifest": lambda backup: (backup / MANIFEST).write_text("{"),
    "a stray file": lambda backup: (backup / "edits_1-2").touch(),
    "another cluster": _other_cluster,
    "a file elsewhere": _elsewhere,
    "a newer format": _newer_format,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    backup = backup_in(tmp_path)
    verify(backup)
    damage(backup)
    with pytest.raises((BackupError, ImageError, EditsError)):
        verify(backup)


def test_what_was_not_published_leaves_nothing(tmp_path: Path) -> None:
    with room_in(tmp_path) as room:
        (room / "half").touch()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_what_is_listed_as_not_whole(tmp_path: Path) -> None:
    backup = backup_in(tmp_path)
    left = backup.with_name("_unfinished.1")
    shutil.copytree(backup, left)
    assert why_not_whole(backup)[1] == ""
    assert "killed" in why_not_whole(left)[1]
    with pytest.raises(BackupError):
        existing(tmp_path, left.name)


@pytest.mark.parametrize("lost", [IMAGE, VERSION, MANIFEST])
def test_a_list_shows_a_lost_file(tmp_path: Path, lost: str) -> None:
    backup = backup_in(tmp_path)
    (backup / lost).unlink()
    assert lost in why_not_whole(backup)[1]
