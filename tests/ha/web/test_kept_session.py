"""One session for all looks, against a real ZooKeeper."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from ha.web.kept_session import KeptSession
from tests.local_services import running_zookeeper

pytestmark = pytest.mark.zookeeper
SECONDS = 60.0


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path) as server:
        yield server


async def test_looks_share_a_session_and_hear_of_the_lock(zookeeper: ZooKeeper) -> None:
    settings = ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=10.0,
        scope="/web/ns1",
        acl=parse_acl("world:anyone:rwcda"),
    )
    changed = asyncio.Event()
    kept = KeptSession(changed.set)
    async with asyncio.timeout(SECONDS), connected(settings, deadline_seconds=SECONDS) as other:
        await ensure_parent(other, settings)
        async with kept.opened(settings, deadline_seconds=SECONDS) as first:
            pass
        async with kept.opened(settings, deadline_seconds=SECONDS) as second:
            assert second is first
        assert not changed.is_set()
        await other.create(settings.lock)
        await changed.wait()
        await kept.close()
        async with kept.opened(settings, deadline_seconds=SECONDS) as third:
            assert third is not first
        await kept.close()
