"""Sees that a test leaves no descriptor of a process (pidfd_open) open."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def processes_let_go() -> Iterator[None]:
    before = descriptors_of_processes()
    yield
    assert descriptors_of_processes() <= before


def descriptors_of_processes() -> set[int]:
    """Return those that are open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed since it was listed
            if str(descriptor.readlink()) == "anon_inode:[pidfd]":
                found.add(int(descriptor.name))
    return found
