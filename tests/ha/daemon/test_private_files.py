"""New files are their user's alone, and only within the block."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ha.daemon.private_files import private_files


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("fails", [False, True])
def test_the_umask_is_back_however_the_block_ends(
    umask: int, tmp_path: Path, *, fails: bool
) -> None:
    with suppress(ZeroDivisionError), private_files():
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        assert 1 // (not fails)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert os.umask(umask) == umask
