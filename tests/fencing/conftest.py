"""One sshd for the tests of a module, as it was at the start of each of them."""

from collections.abc import Iterator

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
