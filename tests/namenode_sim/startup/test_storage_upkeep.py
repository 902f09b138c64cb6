"""Name directories over time: a new one is filled, a failed one comes back, old files go."""

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from hadoop.errors import StorageError
from journal.model import TxId
from namenode_sim.edits.ops import Mkdir
from namenode_sim.edits.values import Permission
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import read_digest, unfinished_name
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage import storage as storage_storage
from namenode_sim.storage.retention import PurgePlan, Retention, plan_purge
from namenode_sim.transfer.image_intake import ImageIntake
from tests.namenode_sim.image.image_world import rich_namespace
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

WHO = Permission("a", "b", 0o755)


def formatted(
    *directories: Path, settings: storage_storage.StorageSettings | None = None
) -> storage_storage.NameStorage:
    format_name_dirs(directories, info(), Namespace.empty("hdfs"))
    return storage_storage.open_name_dirs(directories, settings)


def held(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "current").iterdir())


def standing(storage: storage_storage.NameStorage) -> tuple[list[Path], list[Path]]:
    return list(storage.directories), list(storage.failed)


def grow(namespace: Namespace) -> None:
    txid = TxId(namespace.last_applied + 1)
    namespace.apply(txid, Mkdir(0, f"/made-by-{txid}", 1, 1, WHO))


@pytest.mark.parametrize("with_folder", [True, False])
def test_an_empty_directory_beside_a_formatted_one_is_filled(
    tmp_path: Path, with_folder: bool
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a)
    namespace = rich_namespace()
    storage.save(namespace)
    storage.write_seen_txid(TxId(24))
    storage.close()
    (b / "current" if with_folder else b).mkdir(parents=True)
    storage = storage_storage.open_name_dirs([b, a])
    assert storage.directories == (b, a)
    storage.close()
    image = f"fsimage_{namespace.last_applied:019d}"
    assert held(b) == ["VERSION", image, f"{image}.md5", "seen_txid"]
    alone = storage_storage.open_name_dirs([b])
    assert (alone.namespace_info, alone.seen_txid) == (info(), 24)
    assert differences(alone.load(), namespace) == []
    alone.close()


def test_a_current_that_lies_elsewhere_is_filled_where_it_is(tmp_path: Path) -> None:
    a, b, elsewhere = tmp_path / "a", tmp_path / "b", tmp_path / "elsewhere"
    formatted(a).close()
    b.mkdir()
    elsewhere.mkdir()
    (b / "current").symlink_to(elsewhere)
    storage_storage.open_name_dirs([a, b]).close()
    assert (elsewhere / "VERSION").exists()
    storage_storage.open_name_dirs([b]).close()


def test_a_directory_is_not_called_formatted_when_filling_it_failed(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    formatted(a).close()
    b.mkdir()
    image = a / "current" / f"fsimage_{0:019d}"
    sound = image.read_bytes()
    image.write_bytes(sound[:-1] + b"x")
    with pytest.raises(ImageError, match="is corrupt"):
        storage_storage.open_name_dirs([a, b])
    assert not (b / "current").exists()
    assert not (a / "in_use.lock").exists()
    image.write_bytes(sound)
    (b / "current").mkdir()
    (b / "current" / "something").touch()
    with pytest.raises(StorageError, match="holds files but no VERSION"):
        storage_storage.open_name_dirs([a, b])


@pytest.mark.parametrize("at", range(1, 10))
def test_a_directory_that_could_not_be_filled_is_filled_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Fill its disk at one of the nine syncs, and make room again."""
    a, b = tmp_path / "a", tmp_path / "b"
    formatted(a).close()
    b.mkdir()
    sync, syncs = os.fsync, count(1)

    def full(fd: int) -> None:
        if next(syncs) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            storage_storage.open_name_dirs([a, b])
    storage = storage_storage.open_name_dirs([a, b])
    assert storage.directories == (a, b)
    storage.close()
    assert held(b) == held(a)
    assert [path.name for path in b.iterdir()] == ["current"]


def refusing(directory: Path) -> Callable[[Path], None]:
    def write(current: Path) -> None:
        if current.parent == directory:
            raise OSError(errno.EIO, "Input/output error")

    return write


def test_what_two_threads_learn_of_failed_directories_adds_up(tmp_path: Path) -> None:
    """Drop one by an upload, while a save that has written to it is not at its end yet."""
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b)

    def save(current: Path) -> None:
        if current.parent == b:
            storage.in_all(refusing(a))

    storage.in_all(save)
    assert standing(storage) == ([b], [a])
    with pytest.raises(StorageError, match="all other name directories failed"):
        storage.in_all(refusing(b))
    assert standing(storage) == ([b], [a])
    storage.close()


def test_an_image_that_is_there_is_not_written_again_unless_it_is_damaged(tmp_path: Path) -> None:
    """Avoid a crash between digest and image, which would leave two that do not fit."""
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b)
    namespace = rich_namespace()
    sound = storage.save(namespace)
    storage.close()
    damaged = b / "current" / sound.name
    damaged.write_bytes(b"x")
    inode = sound.stat().st_ino
    gzip = storage_storage.StorageSettings(codec="org.apache.hadoop.io.compress.GzipCodec")
    storage = storage_storage.open_name_dirs([a, b], gzip)
    assert storage.save(namespace) == sound
    storage.close()
    assert sound.stat().st_ino == inode
    assert differences(load_image(damaged), namespace) == []


def test_a_failed_directory_is_restored_by_the_next_save_that_finds_it_well(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b, settings=storage_storage.StorageSettings(restore_failed=True))
    namespace = rich_namespace()
    shutil.rmtree(a)
    storage.save(namespace)
    assert standing(storage) == ([b], [a])
    grow(namespace)
    storage.save(namespace)
    assert storage.failed == (a,), "the disk is still away"
    a.mkdir()
    grow(namespace)
    storage.save(namespace)
    assert standing(storage) == ([b, a], [])
    assert differences(load_image(a / "current" / held(a)[-3]), namespace) == []
    with pytest.raises(StorageError, match="is locked by"):
        storage_storage.open_name_dirs([a])
    storage.close()
    storage_storage.open_name_dirs([a, b]).close()


def test_a_directory_that_local_edits_have_made_anew_keeps_them_when_it_is_restored(
    tmp_path: Path,
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b, settings=storage_storage.StorageSettings(restore_failed=True))
    shutil.rmtree(a / "current")
    storage.write_seen_txid(TxId(7))
    (a / "current").mkdir()
    edits = a / "current" / f"edits_inprogress_{7:019d}"
    edits.touch()
    storage.save(rich_namespace())
    assert standing(storage) == ([b, a], [])
    assert edits.exists()
    storage.close()
    storage_storage.open_name_dirs([a, b]).close()


def test_a_directory_that_only_ran_full_keeps_its_files_when_it_is_restored(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b, settings=storage_storage.StorageSettings(restore_failed=True))
    (a / "current").rename(a / "away")
    storage.write_seen_txid(TxId(7))
    assert storage.failed == (a,)
    (a / "away").rename(a / "current")
    storage.save(rich_namespace())
    assert storage.directories == (b, a)
    assert (a / "current" / "seen_txid").read_text() == "7\n"
    assert f"fsimage_{0:019d}" in held(a)
    storage.close()


def test_without_the_setting_a_failed_directory_stays_out(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b)
    (a / "current").rename(a / "away")
    storage.write_seen_txid(TxId(7))
    (a / "away").rename(a / "current")
    storage.save(rich_namespace())
    assert storage.directories == (b,)
    storage.close()


def test_a_directory_of_another_file_system_is_never_restored_over(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = formatted(a, b, settings=storage_storage.StorageSettings(restore_failed=True))
    shutil.rmtree(a / "current")
    storage.write_seen_txid(TxId(7))
    storage.failed, kept = (), storage.failed
    shutil.rmtree(a)
    format_name_dirs([a], info(namespace_id=8), Namespace.empty("x"))
    storage.failed = kept
    before = held(a)
    storage.save(rich_namespace())
    assert standing(storage) == ([b], [a])
    assert held(a) == before
    storage.close()


def test_a_save_keeps_the_newest_images_and_drops_left_overs(tmp_path: Path) -> None:
    storage = formatted(
        tmp_path,
        settings=storage_storage.StorageSettings(retention=Retention(images=2, extra_edits=1)),
    )
    namespace = rich_namespace()
    base = namespace.last_applied
    current = tmp_path / "current"
    keep = [f"edits_{base - 1:019d}-{base:019d}", f"edits_inprogress_{base + 9:019d}"]
    drop = [f"edits_{base - 3:019d}-{base - 2:019d}", "fsimage.ckpt_0000000000000000099"]
    for name in [*keep, *drop, f"edits_inprogress_{base - 5:019d}", "notes.txt"]:
        (current / name).touch()
    for _ in range(3):
        storage.save(namespace)
        grow(namespace)
    images = [f"fsimage_{txid:019d}" for txid in (base + 1, base + 2)]
    digests = [f"{image}.md5" for image in images]
    stale = f"edits_inprogress_{base - 5:019d}.stale"
    expected = ["VERSION", "seen_txid", "notes.txt", stale, keep[1], *images, *digests]
    # The older image that is kept needs edits from base+2 on, and one extra edit is kept.
    assert held(tmp_path) == sorted(expected)
    storage.close()


def test_what_is_being_written_is_no_left_over(tmp_path: Path) -> None:
    """An operator has an image saved while another NameNode's image comes, or the other way."""
    storage, other = formatted(tmp_path / "a", tmp_path / "b"), formatted(tmp_path / "other")
    namespace = rich_namespace()
    image = other.save(namespace)
    intake = ImageIntake(storage, namespace.last_applied)
    intake.feed(image.read_bytes())
    grow(namespace)

    def check() -> None:
        storage.purge()

    storage.save(namespace, check)
    assert standing(storage) == ([tmp_path / "a", tmp_path / "b"], [])
    assert intake.publish(image.stat().st_size, read_digest(image)) == 2
    intake.discard()
    left = [name for name in held(tmp_path / "a") if "ckpt" in name]
    (tmp_path / "a" / "current" / f"{unfinished_name(namespace.last_applied)}.received").touch()
    storage.purge()
    assert left == [name for name in held(tmp_path / "a") if "ckpt" in name] == []
    storage.close()
    other.close()


def test_a_segment_that_cannot_be_set_aside_stays_and_the_save_is_none_the_worse(
    tmp_path: Path,
) -> None:
    """Go on: the image has its name by then, and other journals must still hear of it."""
    storage = formatted(
        tmp_path,
        settings=storage_storage.StorageSettings(retention=Retention(images=1, extra_edits=0)),
    )
    namespace = rich_namespace()
    left = tmp_path / "current" / f"edits_inprogress_{namespace.last_applied - 5:019d}"
    left.touch()
    left.with_name(f"{left.name}.stale").mkdir()
    assert storage.save(namespace).exists()
    assert left.exists()
    storage.close()


PLANS = {
    "nothing to purge without an image": ([], [(1, 5)], Retention(), PurgePlan((), 0)),
    "two images stay": ([5, 9, 3, 9], [], Retention(2, 0, 9), PurgePlan((3,), 6)),
    "extra edits stay below the oldest kept image": (
        [100, 200],
        [],
        Retention(2, 60, 9),
        PurgePlan((), 41),
    ),
    "the default keeps a million edits": ([5, 9], [(1, 5)], Retention(), PurgePlan((), 0)),
    "too many extra segments: the oldest go": (
        [100],
        [(1, 30), (31, 60), (61, 90), (91, 100), (101, 110)],
        Retention(1, 1000, 2),
        PurgePlan((), 61),
    ),
    "a segment around the image is never purged": (
        [100],
        [(1, 30), (31, 120)],
        Retention(1, 1000, 0),
        PurgePlan((), 101),
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_what_retention_lets_go(case: str) -> None:
    images, segments, retention, plan = PLANS[case]
    assert plan_purge(images, segments, retention) == plan
