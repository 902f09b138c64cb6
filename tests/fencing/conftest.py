"""One sshd for the tests of a module, as it was at the start of each of them."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fencing.sshd import Sshd, sshd_in


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd_in(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def sshd(daemon: Sshd) -> Iterator[Sshd]:
    yield daemon
    for command in daemon.commands.iterdir():
        command.unlink()


@pytest.fixture(autouse=True)
def _processes_let_go() -> Iterator[None]:
    """See that no test leaves a descriptor of a process (pidfd_open) open."""
    before = _held_processes()
    yield
    assert _held_processes() <= before


def _held_processes() -> int:
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed since it was listed
            found += str(descriptor.readlink()) == "anon_inode:[pidfd]"
    return found
