"""Name directories: formatting, opening, locking, several copies, and what their errors say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hadoop.directory_lock import DirectoryLock
from hadoop.errors import InUse, StorageError
from hadoop.java_properties import properties
from hadoop.location import path_of
from journal.model import NamespaceInfo, TxId
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.errors import Inconsistent, NotEmpty, NotFormatted
from namenode_sim.storage.format import find_occupied
from namenode_sim.storage.storage import NameStorage, open_name_dirs
from namenode_sim.storage.version_file import parse_version, version_text
from tests.log_lines import captured
from tests.namenode_sim.image.image_world import real, rich_namespace
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs


def _formatted(*directories: Path) -> NameStorage:
    format_name_dirs(directories, info(), Namespace.empty("hdfs"))
    return open_name_dirs(directories)


def test_a_formatted_directory_holds_what_hadoop_puts_there(tmp_path: Path) -> None:
    storage = _formatted(tmp_path / "a", tmp_path / "b")
    for name in "ab":
        held = sorted(path.name for path in (tmp_path / name / "current").iterdir())
        image = "fsimage_0000000000000000000"
        assert held == ["VERSION", image, f"{image}.md5", "seen_txid"]
        assert (tmp_path / name / "current" / "seen_txid").read_text() == "0\n"
    assert storage.namespace_info == info()
    assert storage.load().last_applied == 0
    storage.close()
    assert not (tmp_path / "a" / "in_use.lock").exists()


def test_formatting_refuses_any_directory_that_is_not_empty(tmp_path: Path) -> None:
    _formatted(tmp_path / "b").close()
    with pytest.raises(NotEmpty, match="--force"):
        format_name_dirs([tmp_path / "a", tmp_path / "b"], info(), Namespace.empty("x"))
    assert not (tmp_path / "a" / "current").exists()
    other = NamespaceInfo(-65, 8, "CID-other", 0, "BP-2")
    format_name_dirs([tmp_path / "b"], other, Namespace.empty("x"), force=True)
    storage = open_name_dirs([tmp_path / "b"])
    assert storage.namespace_info == other
    storage.close()


def test_a_missing_directory_beside_a_good_one_is_no_reason_to_format(tmp_path: Path) -> None:
    _formatted(tmp_path / "a").close()
    with pytest.raises(StorageError, match=r"does not exist, while .*/a is formatted") as told:
        open_name_dirs([tmp_path / "a", tmp_path / "b"])
    assert "--format" not in str(told.value)
    with pytest.raises(NotFormatted, match="--format"):
        open_name_dirs([tmp_path / "c"])


BLOCKED = {
    "a file instead of the directory": ("", "is not a directory"),
    "a directory instead of VERSION": ("current/VERSION", "cannot be used: .*VERSION"),
    "a directory instead of the lock": ("in_use.lock", "cannot be used: .*in_use.lock"),
}


@pytest.mark.parametrize("case", BLOCKED)
def test_what_lies_in_the_way_is_named_with_what_to_do(tmp_path: Path, case: str) -> None:
    name, said = BLOCKED[case]
    place = tmp_path / "a"
    _formatted(place).close()
    if not name:
        place.rename(tmp_path / "away")
        place.write_text("x")
    else:
        (place / name).unlink(missing_ok=True)
        (place / name).mkdir()
    with pytest.raises(StorageError, match=rf"{said}.*(Move|Mend)"):
        open_name_dirs([place])
    if name != "current/VERSION":
        with pytest.raises(StorageError, match=r"cannot be used.*Mend"):
            format_name_dirs([place], info(), Namespace.empty("x"), force=True)


def test_a_copy_of_the_image_that_cannot_be_read_gives_way_to_the_next(tmp_path: Path) -> None:
    storage = _formatted(tmp_path / "a", tmp_path / "b")
    first, second = storage.newest_images()
    first.unlink()
    first.mkdir()
    assert storage.load().last_applied == 0
    second.unlink()
    second.mkdir()
    with pytest.raises(StorageError, match=r"fsimage.* cannot be used.*Mend"):
        storage.load()
    storage.close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    storage = _formatted(tmp_path)
    assert (tmp_path / "in_use.lock").read_text().startswith(f"{os.getpid()}@")
    with pytest.raises(InUse, match=f"locked by {os.getpid()}@"):
        open_name_dirs([tmp_path])
    with pytest.raises(InUse):
        format_name_dirs([tmp_path], info(), Namespace.empty("x"), force=True)
    storage.close()
    open_name_dirs([tmp_path]).close()


def test_a_lock_is_let_go_though_its_file_cannot_be_removed(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    kept = lock.path.rename(tmp_path / "kept")
    lock.path.mkdir()
    with pytest.raises(OSError, match=r"in_use\.lock"):
        lock.release()
    lock.path.rmdir()
    kept.rename(lock.path)
    DirectoryLock(tmp_path).release()


def test_the_lock_holds_against_a_process_that_locks_as_java_does(tmp_path: Path) -> None:
    storage = _formatted(tmp_path)
    as_java = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(7)\n"
    )
    lock = str(tmp_path / "in_use.lock")
    assert subprocess.run([sys.executable, "-c", as_java, lock], check=False).returncode == 7
    storage.close()


def test_an_unformatted_directory_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(NotFormatted, match="nnha namenode --format"):
        open_name_dirs([tmp_path])
    with pytest.raises(NotFormatted, match="does not exist"):
        open_name_dirs([tmp_path / "none"])
    assert list(tmp_path.iterdir()) == []


WITHOUT_VERSION = {
    "an image": ("current/fsimage_0000000000000000000", "Restore it from"),
    "edits": ("current/edits_0000000000000000001-0000000000000000002", "Restore it from"),
    "the state before an upgrade": ("previous/VERSION", "Restore current from"),
}


@pytest.mark.parametrize(("held", "advice"), WITHOUT_VERSION.values(), ids=WITHOUT_VERSION)
def test_what_is_left_of_a_file_system_without_its_version_is_kept(
    tmp_path: Path, held: str, advice: str
) -> None:
    left, good = tmp_path / "left", tmp_path / "good"
    (left / held).parent.mkdir(parents=True)
    (left / held).touch()
    with pytest.raises(Inconsistent, match=rf"current/VERSION is missing, while .*{advice}"):
        open_name_dirs([left])
    assert find_occupied([left]) == [left]
    _formatted(good).close()
    with pytest.raises(Inconsistent):
        open_name_dirs([good, left])


def test_directories_of_two_file_systems_do_not_go_together(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    _formatted(a).close()
    (b / "current").mkdir(parents=True)
    (b / "current" / "edits_0000000000000000001-0000000000000000002").touch()
    with pytest.raises(Inconsistent, match="holds files but no VERSION"):
        open_name_dirs([a, b])
    other = NamespaceInfo(-65, 8, "CID-other", 0, "BP-2")
    format_name_dirs([b], other, Namespace.empty("x"), force=True)
    with pytest.raises(Inconsistent, match="CID-other"):
        open_name_dirs([a, b])
    open_name_dirs([a]).close()


def test_an_interrupted_upgrade_is_not_touched(tmp_path: Path) -> None:
    _formatted(tmp_path).close()
    (tmp_path / "previous.tmp").mkdir()
    with pytest.raises(Inconsistent, match="interrupted"):
        open_name_dirs([tmp_path])


VERSIONS = {
    "a JournalNode's": (b"storageType=NAME_NODE", b"storageType=JOURNAL_NODE", "JOURNAL_NODE"),
    "of a newer layout": (b"layoutVersion=-65", b"layoutVersion=-99", "-99"),
    "before protobuf images": (b"layoutVersion=-65", b"layoutVersion=-47", "-47"),
    "without cluster id": (b"clusterID", b"clusterJD", "lacks clusterID"),
    "with a word for a number": (b"cTime=0", b"cTime=x", "its cTime is 'x', no number"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_a_version_file_we_cannot_use_is_refused(tmp_path: Path, case: str) -> None:
    _formatted(tmp_path).close()
    version = tmp_path / "current" / "VERSION"
    good, bad, reason = VERSIONS[case]
    assert good in version.read_bytes()
    version.write_bytes(version.read_bytes().replace(good, bad))
    with pytest.raises(StorageError, match=reason) as refusal:
        open_name_dirs([tmp_path])
    assert str(version) in str(refusal.value)


def test_the_newest_image_of_all_directories_is_taken(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = _formatted(a, b)
    namespace = rich_namespace()
    storage.save(namespace)
    name = f"fsimage_{namespace.last_applied:019d}"
    (a / "current" / name).unlink()
    assert storage.newest_image() == b / "current" / name
    assert storage.load().last_applied == namespace.last_applied
    storage.close()


def test_a_damaged_copy_is_passed_over_but_never_for_an_older_image(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = _formatted(a, b)
    namespace = rich_namespace()
    storage.save(namespace)
    for number, directory in enumerate((a, b), start=1):
        image = directory / "current" / f"fsimage_{namespace.last_applied:019d}"
        image.write_bytes(image.read_bytes()[:-1] + b"x")
        if number == 1:
            assert storage.load().last_applied == namespace.last_applied
    with pytest.raises(ImageError, match="is corrupt"):
        storage.load()
    storage.close()


def test_a_directory_that_fails_is_dropped_and_the_last_one_is_not(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    storage = _formatted(a, b)
    shutil.rmtree(a / "current")
    storage.write_seen_txid(TxId(5))
    assert storage.directories == (b,)
    assert storage.seen_txid == 5
    shutil.rmtree(b / "current")
    with pytest.raises(StorageError, match="all other name directories failed"):
        storage.write_seen_txid(TxId(6))
    storage.close()


UNREADABLE = {"a word": "many\n", "nothing": "", "too long": "1" * 20, "a directory": None}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_the_images_beside_an_unreadable_seen_txid_are_left_out(
    tmp_path: Path, text: str | None
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    _formatted(bad, good).close()
    note = bad / "current" / "seen_txid"
    note.unlink()
    note.mkdir() if text is None else note.write_text(text)
    (good / "current" / "seen_txid").write_text("3\n")
    with captured("storage.") as told:
        storage = open_name_dirs([bad, good])
    assert [one["path"] for one in told if one["log_level"] == "warning"] == [str(note.parent)]
    assert (storage.newest_image().parent.parent, storage.seen_txid) == (good, 3)
    assert storage.newest_images() == (storage.newest_image(),)
    # One that is newer than all others is not passed over.
    namespace = rich_namespace()
    save_image(namespace, bad / "current" / image_name(namespace.last_applied), info())
    refused = r"seen_txid (holds|cannot be read).*in decimal"
    with pytest.raises(Inconsistent, match=refused):
        storage.load()
    storage.close()
    alone = open_name_dirs([bad])
    for read in (alone.load, lambda: alone.seen_txid):
        with pytest.raises(Inconsistent, match=refused):
            read()
    alone.close()


def test_the_next_image_mends_an_unreadable_seen_txid(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    _formatted(bad, good).close()
    note = bad / "current" / "seen_txid"
    note.write_text("many\n")
    (good / "current" / "seen_txid").write_text("1000000\n")
    storage = open_name_dirs([bad, good])
    storage.save(namespace := rich_namespace())
    assert (note.read_text(), storage.seen_txid) == (f"{namespace.last_applied}\n", 1000000)
    assert [path.parent.parent for path in storage.newest_images()] == [bad, good]
    storage.close()


@pytest.mark.parametrize(
    ("text", "seen"),
    {"-5\n": 0, "+7\n": 7, "8\nnot read": 8}.items(),
    ids=["negative", "with a sign", "two lines"],
)
def test_seen_txid_is_read_as_hadoop_reads_it(tmp_path: Path, text: str, seen: int) -> None:
    storage = _formatted(tmp_path)
    (tmp_path / "current" / "seen_txid").write_text(text)
    assert storage.seen_txid == seen
    storage.close()


def test_a_name_directory_of_hadoop_opens(tmp_path: Path) -> None:
    shutil.copytree(real("name-dir/VERSION").parent, tmp_path / "current")
    (tmp_path / "current").chmod(0o700)
    storage = open_name_dirs([tmp_path])
    assert storage.namespace_info == NamespaceInfo(
        -60,
        1773352731,
        "CID-70331fef-e9dc-4cf1-a549-834fd6422ebd",
        0,
        "BP-1838935911-192.168.56.1-1421267126001",
    )
    assert (storage.seen_txid, storage.load().last_applied) == (27, 26)
    storage.close()


def test_version_values_are_escaped_as_java_escapes_them() -> None:
    odd = NamespaceInfo(-65, 1, " a:b=c#d!e\\f\u00e9\U0001f600", 0, "BP")
    text = version_text(odd, comment="c")
    assert b"clusterID=\\ a\\:b\\=c\\#d\\!e\\\\f\\u00E9\\uD83D\\uDE00\n" in text
    assert parse_version(text) == odd
    assert properties(b"! x\n a : b\\\n   c\nd=\\u0041\r\ne\n") == {"a": "bc", "d": "A", "e": ""}


@pytest.mark.parametrize(
    ("uri", "path"),
    {"/data/nn": "/data/nn", "file:///data/n%20n": "/data/n n", "file:/x": "/x"}.items(),
)
def test_a_directory_may_be_written_as_a_uri(uri: str, path: str) -> None:
    assert path_of(uri) == Path(path)


def test_a_uri_of_another_scheme_is_no_directory() -> None:
    with pytest.raises(ValueError, match="hdfs"):
        path_of("hdfs://x/y")
