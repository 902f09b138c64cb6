"""The three booted hosts that the tests of this folder share."""

import os
from collections.abc import Iterator

import pytest

from tests.deploy.systemd.hosts import Hosts, running
from tests.deploy.systemd.image import installed


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Set up by the guide's own commands, formatted, and healthy."""
    directory = tmp_path_factory.mktemp("booted")
    with running(directory, installed(directory), seed=os.getpid()) as found:
        found.install()
        found.format()
        found.everything_up()
        yield found
