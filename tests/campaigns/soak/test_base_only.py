"""The trial of the wheel's base would see a base that has grown, and a command that is broken."""

from pathlib import Path

import pytest

from tests.campaigns.soak import base_only

TELLS_ITS_EXTRA = """
case $1 in {names}) echo "Error: nnha $1 needs numpy: pip install 'nnha[spark]'" >&2; exit 2;; esac
"""


def environment_of(folder: Path, script: str) -> Path:
    command = folder / "bin" / "nnha"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return folder


def test_a_base_that_has_grown_is_told() -> None:
    assert base_only.too_large(base_only.Size(base_only.MOST_MEGABYTES, 70.0)) == []
    assert base_only.too_large(base_only.Size(base_only.MOST_MEGABYTES + 0.1, 70.0)) != []


def test_a_file_takes_whole_blocks_and_a_link_nothing(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000_001)
    (tmp_path / "link").symlink_to(tmp_path / "large")
    found = base_only.size_of(tmp_path)
    assert found.files == 1.0
    assert found.disk >= found.files


def test_commands_that_are_as_they_should_be_are_left_alone(tmp_path: Path) -> None:
    script = TELLS_ITS_EXTRA.format(names="|".join(sorted(base_only.NEED_AN_EXTRA)))
    environment = environment_of(tmp_path, script)
    assert list(base_only.broken_commands(environment, tmp_path)) == []


@pytest.mark.parametrize(
    "broken",
    [
        'test $1 != status || { echo "No module named numpy" >&2; exit 1; }',
        'test $1 != status || echo "Traceback (most recent call last):" >&2',
        "test $1 != status || { echo \"nnha status needs numpy: pip install 'nnha[spark]'\">&2;"
        " exit 2; }",
    ],
)
def test_a_command_that_is_broken_without_its_extra_is_told(tmp_path: Path, broken: str) -> None:
    script = broken + TELLS_ITS_EXTRA.format(names="|".join(sorted(base_only.NEED_AN_EXTRA)))
    (told,) = base_only.broken_commands(environment_of(tmp_path, script), tmp_path)
    assert told.startswith("nnha status --help: exit code")
