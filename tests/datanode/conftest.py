"""Three DataNodes without NameNodes, and an active and a standby without DataNodes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ha.security.kerberos.own import log_in
from tests.datanode.block_client import Node, encrypt_by, node
from tests.datanode.name_nodes import STANDBY, NameNode, name_node
from tests.datanode.stores import close_stores


@pytest.fixture(autouse=True)
def _closed_stores() -> Iterator[None]:
    yield
    close_stores()


@pytest.fixture(autouse=True)
def _calls_as_itself_again() -> Iterator[None]:
    yield
    log_in(None)
    encrypt_by()


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(node(tmp_path / name)) for name in "abc"]


@pytest.fixture
async def active() -> AsyncIterator[NameNode]:
    async with name_node() as model:
        yield model


@pytest.fixture
async def standby() -> AsyncIterator[NameNode]:
    async with name_node(STANDBY, txid=90) as model:
        yield model
