"""One session for all looks, against a real ZooKeeper."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Doubt, Unknown
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


def settings_of(zookeeper: ZooKeeper, session_timeout_seconds: float) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=session_timeout_seconds,
        scope="/web/ns1",
        acl=parse_acl("world:anyone:rwcda"),
    )


async def test_looks_share_a_session_and_hear_of_the_lock(zookeeper: ZooKeeper) -> None:
    settings = settings_of(zookeeper, 10.0)
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


async def test_a_session_that_was_lost_is_replaced_and_ended(zookeeper: ZooKeeper) -> None:
    """Threads that are left fail it (tests/balance.py)."""
    settings = settings_of(zookeeper, 2.0)
    kept = KeptSession(lambda: None)
    async with asyncio.timeout(SECONDS):
        async with kept.opened(settings, deadline_seconds=SECONDS) as first:
            pass
        os.kill(zookeeper.pid, signal.SIGSTOP)
        while await first.look(settings.lock) != Unknown(Doubt.LOST):
            pass
        os.kill(zookeeper.pid, signal.SIGCONT)
        second = first
        while second is first:
            async with kept.opened(settings, deadline_seconds=SECONDS) as second:
                pass
        await kept.close()
