"""Strangers at a real ZooKeeper: znodes of an older, open cluster are closed, and then hold."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from kazoo.security import make_digest_acl_credential

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Role
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl, parse_auth
from ha.elector.zookeeper.outcome import Outcome, Refusal, Refused, value_of
from ha.elector.zookeeper.session_close import acls_below
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import connected, content_of, ensure_parent
from ha.notices.board import utc_now
from ha.notices.model import Drain, Pause, encode_pause
from ha.notices.store import drains_path, pause_path, read_pause, write_drain, write_pause
from tests.ha.elector.people import people
from tests.ha.zkfc.site import Site

pytestmark = pytest.mark.zookeeper

WAIT_SECONDS = 30.0
NN2 = encode(ActiveNodeInfo("ns", "nn2", "nn2.example", 8020, 8019))
OPEN = parse_acl("world:anyone:rwcda")
WORD = "digest:hdfs:right"
_numbers = itertools.count(1)


def _open(site: Site, zookeeper: ZooKeeper) -> ZooKeeperSettings:
    """Return settings as an earlier controller had them: no client proves anything."""
    return ZooKeeperSettings(
        hosts=zookeeper.connect,
        session_timeout_seconds=5.0,
        scope=f"/strangers{next(_numbers)}/{site.nameservice}",
        acl=OPEN,
    )


def _closed(settings: ZooKeeperSettings, word: str = WORD) -> ZooKeeperSettings:
    return replace(settings, acl=parse_acl("auth::rwcda"), auth=parse_auth(word))


Closing = tuple[Site, ZooKeeperSettings]


@asynccontextmanager
async def _inside(settings: ZooKeeperSettings) -> AsyncIterator[Session]:
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        yield session


def _close(site: Site, settings: ZooKeeperSettings) -> None:
    """Credentials and nothing else: the rest is by default."""
    site.values["ha.zookeeper.auth"] = WORD
    site.values["ha.zookeeper.parent-znode"] = settings.scope.rpartition("/")[0]


@pytest.fixture
def closing(zookeeper: ZooKeeper, tmp_path: Path) -> Closing:
    """Make a cluster that was open, and is configured to be closed."""
    site = Site(tmp_path, zookeeper.connect)
    settings = _open(site, zookeeper)
    _close(site, settings)
    return site, settings


def _denied(outcome: Outcome[object]) -> bool:
    return isinstance(outcome, Refused) and outcome.why is Refusal.NO_RIGHTS


def _pause(reason: str) -> Pause:
    return Pause(owner="ann", reason=reason, since=utc_now(), until=utc_now() + timedelta(hours=1))


async def _everything(session: Session, settings: ZooKeeperSettings) -> None:
    """Make all that an open cluster leaves."""
    await ensure_parent(session, settings)
    await session.create(settings.lock, NN2, ephemeral=True)
    for path in (settings.breadcrumb, settings.term, settings.count):
        value_of(await session.create(path, NN2), path)
    await write_pause(session, settings, _pause("older"))
    drain = Drain(owner="ann", reason="disk", since=utc_now(), until=None)
    await write_drain(session, settings, "nn9", drain)


async def _attack(session: Session, settings: ZooKeeperSettings) -> list[str]:
    """Return which of a stranger's tries are not refused."""
    lock, crumb, pause = settings.lock, settings.breadcrumb, pause_path(settings)
    tries: dict[str, Awaitable[Outcome[object]]] = {
        "delete the lock": session.delete(lock),
        "write the lock": session.write(lock, b"mine", version=-1),
        "write the breadcrumb": session.write(crumb, b"mine", version=-1),
        "delete the breadcrumb": session.delete(crumb),
        "read the breadcrumb": session.read(crumb),
        "write the pause": session.write(pause, b"mine", version=-1),
        "delete the pause": session.delete(pause),
        "create a znode": session.create(f"{settings.scope}/Mallory"),
        "drain a NameNode": session.create(f"{drains_path(settings)}/nn1", b"x"),
        "open the breadcrumb": session.set_acl(crumb, acl_version=-1),
        "open the scope": session.set_acl(settings.scope, acl_version=-1),
    }
    return [what for what, tried in tries.items() if not _denied(await tried)]


async def test_25_an_open_cluster_is_closed_and_strangers_can_do_nothing(closing: Closing) -> None:
    site, settings = closing
    async with _inside(settings) as older:
        await _everything(older, settings)
        assert len(await _attack(older, replace(settings, scope=f"{settings.scope}x"))) == 11
        code, said = await site.run("--format-zk", "--keep")
        assert (code, "8 of 8 znodes" in said) == (0, True)
        assert f"anybody could have written {pause_path(settings)}" in said
        # The session that made it all is a stranger by now, and so is another identity.
        assert await _attack(older, settings) == []
        async with _inside(replace(_closed(settings, "digest:bob:word"), acl=OPEN)) as bob:
            assert await _attack(bob, settings) == []
        code, said = await site.run("--format-zk", "--keep")  # again: nothing is left to do
        assert (code, "0 of 7 znodes" in said) == (0, True)
    async with _inside(_closed(settings)) as ours:
        pause = await read_pause(ours, settings)
        assert pause is not None
        assert pause.value.reason == "older"  # what it says stays
        assert await content_of(ours, settings.breadcrumb) == NN2
        assert _is_gone(await ours.read(settings.term))  # what could vouch for an end does not
        acls = await acls_below(ours, settings.scope)
    assert len({one.acl for one in acls}) == 1
    assert all(one.acl and not any(e.scheme == "world" for e in one.acl) for one in acls)


def _is_gone(outcome: Outcome[object]) -> bool:
    return isinstance(outcome, Refused) and outcome.why is Refusal.NO_NODE


async def test_25_failover_works_before_and_after_an_open_cluster_is_closed(
    closing: Closing,
) -> None:
    site, settings = closing
    async with people(settings, "a", "b") as (a, b):  # without credentials, as before
        a.join()
        await a.is_(Role.ACTIVE)
        b.join()
        await b.is_(Role.STANDBY)
        a.elector.quit(keep_breadcrumb=True)
        await b.is_(Role.ACTIVE)
    async with people(_closed(settings), "c", "d") as (c, d):  # restarted, with credentials
        c.join()
        await c.is_(Role.ACTIVE)
        assert c.told[:2] == ["fence b", "active"]  # whatever its ACL: it must be fenced
        assert (await site.run("--format-zk", "--keep"))[0] == 0
        d.join()
        await d.is_(Role.STANDBY)
        async with _inside(settings) as stranger:
            assert _denied(await stranger.delete(settings.lock))
        c.elector.quit(keep_breadcrumb=True)
        await d.is_(Role.ACTIVE)
        assert "fence c" in d.told


@pytest.mark.parametrize("task", [(), ("--format-zk",)])
async def test_a_zkfc_whose_znodes_anybody_could_write_does_not_start(
    tmp_path: Path, task: tuple[str, ...]
) -> None:
    code, said = await Site(tmp_path, "10.255.255.1:2181").run(*task)
    assert (code, "anybody who reaches ZooKeeper at 10.255.255.1:2181" in said) == (78, True)


async def test_plain_format_under_a_held_lock_sets_the_acls_and_deletes_nothing(
    closing: Closing,
    tmp_path: Path,
) -> None:
    site, settings = closing
    site.values["nnha.audit.file"] = str(tmp_path / "audit.log")
    async with _inside(settings) as older:
        await _everything(older, settings)
        code, said = await site.run("--format-zk", "--non-interactive")
        assert (code, "the lock is held" in said, "8 of 8 znodes" in said) == (2, True, True)
        (line,) = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
        assert (line["action"], line["outcome"]) == ("zkfc --format-zk", "refused")
        assert line["target"] == settings.scope
        assert await _attack(older, settings) == []


async def test_an_acl_that_would_lock_us_out_changes_nothing(closing: Closing) -> None:
    site, settings = closing
    site.values["ha.zookeeper.acl"] = "sasl:nn:rwcda"
    async with _inside(settings) as older:
        await _everything(older, settings)
        before = await acls_below(older, settings.scope)
        code, said = await site.run("--format-zk", "--keep")
        assert (code, "was left as it is" in said) == (1, True)
        assert await acls_below(older, settings.scope) == before


async def test_znodes_of_another_identity_are_named(closing: Closing) -> None:
    site, settings = closing
    mallory = _closed(settings, "digest:mallory:word")
    async with _inside(settings) as older, _inside(mallory) as other:
        await ensure_parent(older, settings)
        mine = encode_pause(_pause("mine"))
        value_of(await other.create(pause_path(mallory), mine), "create")
        code, said = await site.run("--format-zk", "--keep")
        assert (code, f"ACL of {pause_path(settings)}" in said) == (1, True)
        code, said = await site.run("--check-zk")
        assert code == 0
        assert f"{pause_path(settings)}: made under another identity" in said


async def test_check_tells_who_we_are_and_what_strangers_could_do(closing: Closing) -> None:
    site, settings = closing
    async with _inside(settings) as older:
        await _everything(older, settings)
        code, said = await site.run("--check-zk")
        assert code == 0
        assert "we are:           digest:hdfs\n" in said
        assert f"{settings.breadcrumb}: anybody could do everything with it" in said
        assert (await site.run("--format-zk", "--keep"))[0] == 0
        code, said = await site.run("--check-zk")
        assert (code, "doubtful" in said, "not as configured" in said) == (0, False, False)
        assert "ACL:              digest:hdfs:(hash):" in said
    site.values["ha.zookeeper.auth"] = "digest:bob:word"
    code, said = await site.run("--check-zk")
    assert (code, "ZooKeeper knows us as digest:bob" in said) == (1, True)


async def test_a_breadcrumb_with_an_address_that_is_not_configured_is_told(
    closing: Closing,
) -> None:
    site, settings = closing
    async with _inside(settings) as older:
        await _everything(older, settings)
        code, said = await site.run("--check-zk")
        assert code == 0
        assert "the last active, it names " in said
        assert ":8020, where the configuration has no such NameNode: where others" in said
        value_of(await older.write(settings.breadcrumb, b"scribble", version=-1), "write")
        assert "the last active, it cannot be read (" in (await site.run("--check-zk"))[1]
        own = encode(ActiveNodeInfo(site.nameservice, "nn2", "127.0.0.1", 2, 8019))
        value_of(await older.write(settings.breadcrumb, own, version=-1), "write")
        assert "not configured:" not in (await site.run("--check-zk"))[1]


async def test_a_breadcrumb_that_we_could_not_write_is_told_before_the_first_failover(
    closing: Closing,
) -> None:
    """Share the scope, while each controller's znodes are its own: auth:: with two identities."""
    site, settings = closing
    other = replace(
        _closed(settings, "digest:nn2:word"), acl=parse_acl("auth::rwcda,world:anyone:r")
    )
    async with _inside(settings) as older, _inside(other) as nn2:
        await ensure_parent(older, settings)
        value_of(await nn2.create(settings.breadcrumb, NN2), "create")
        code, said = await site.run("--check-zk")
        assert (code, "takeover by us would fail at the breadcrumb" in said) == (1, True)


async def test_operators_read_where_the_acl_names_them_and_change_nothing(closing: Closing) -> None:
    operator = make_digest_acl_credential("ops", "word")
    site, settings = closing
    site.values["ha.zookeeper.acl"] = f"auth::rwcda,digest:{operator}:r"
    async with _inside(settings) as older:
        await _everything(older, settings)
        assert (await site.run("--format-zk", "--keep"))[0] == 0
        reading = replace(settings, auth=parse_auth("digest:ops:word"))
        async with _inside(reading) as ops:
            assert await read_pause(ops, reading) is not None
            assert await _attack(ops, settings) == ["read the breadcrumb"]
