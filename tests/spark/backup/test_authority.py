"""What comes back of an authority is what went in, and nothing outside the folder."""

import io
import tarfile
from pathlib import Path

import pytest

from spark.backup.create import pack_authority
from spark.backup.model import AUTHORITY, BackupError
from spark.backup.restore import restore_authority


def _put(backup: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(backup / AUTHORITY, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    member.size = 1 if kind == tarfile.REGTYPE else 0
    return member


def test_the_files_come_back_with_their_content_and_their_modes(tmp_path: Path) -> None:
    authority, backup, back = (tmp_path / name for name in ("authority", "backup", "back"))
    for folder in (authority, authority / "issued", backup):
        folder.mkdir(mode=0o700)
    for name, mode in {"ca.key": 0o600, "ca.pem": 0o644, "issued/1.pem": 0o640}.items():
        (authority / name).write_text(name)
        (authority / name).chmod(mode)
    pack_authority(authority, backup)
    restore_authority(backup, back)
    for path in authority.rglob("*"):
        other = back / path.relative_to(authority)
        assert other.stat().st_mode == path.stat().st_mode, path
        assert path.is_dir() or other.read_bytes() == path.read_bytes()
    assert len(list(back.rglob("*"))) == 4
    with pytest.raises(BackupError, match="not empty; nothing was changed"):
        restore_authority(backup, back)


@pytest.mark.parametrize(
    "bad",
    [
        _member("/tmp/ca.pem"),
        _member("../ca.pem"),
        _member("a/../../ca.pem"),
        _member("ca.pem", tarfile.SYMTYPE, "/etc/passwd"),
        _member("ca.pem", tarfile.LNKTYPE, "../secret"),
        _member("ca.pem", tarfile.FIFOTYPE),
        _member("ca.pem", tarfile.CHRTYPE),
    ],
    ids=lambda member: f"{member.name} {member.type.decode()}",
)
def test_an_archive_with_anything_else_is_refused_before_a_file_is_written(
    tmp_path: Path, bad: tarfile.TarInfo
) -> None:
    _put(tmp_path, _member("ca.key"), bad)
    with pytest.raises(BackupError, match="is no file below it"):
        restore_authority(tmp_path, tmp_path / "back")
    assert not (tmp_path / "back").exists()
