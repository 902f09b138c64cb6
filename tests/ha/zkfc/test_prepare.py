"""``zkfc --format-zk``, ``--clear-zk`` and ``--check-zk`` on a real ZooKeeper."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.zookeeper import ZooKeeper
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import parse_acl
from ha.elector.zookeeper.outcome import Done, Outcome
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.elector.zookeeper.znodes import connected, ensure_parent
from tests.ha.zkfc.site import Site

pytestmark = pytest.mark.zookeeper

WAIT_SECONDS = 30.0
NN2 = ActiveNodeInfo("ns", "nn2", "nn2.example", 8020, 8019)


def _settings(site: Site) -> ZooKeeperSettings:
    return ZooKeeperSettings(
        hosts=site.zookeeper,
        session_timeout_seconds=5.0,
        scope=f"/hadoop-ha/{site.nameservice}",
        acl=parse_acl("world:anyone:rwcda"),
    )


@asynccontextmanager
async def _inside(settings: ZooKeeperSettings) -> AsyncIterator[Session]:
    async with connected(settings, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, settings)
        yield session


def _exists(outcome: Outcome[object]) -> bool:
    assert isinstance(outcome, Done)
    return outcome.value is not None


@pytest.mark.row("W21")
async def test_w21_nothing_is_formatted_or_cleared_under_a_held_lock(site: Site) -> None:
    settings = _settings(site)
    async with _inside(settings) as session:
        await session.create(settings.breadcrumb, encode(NN2))
        await session.create(settings.lock, encode(NN2), ephemeral=True)
        for option in ("--format-zk", "--clear-zk"):
            for more in ((), ("--non-interactive",)):
                code, said = await site.run(option, *more, typed="y\n")
                assert (code, "the lock is held" in said) == (2, True)
        assert _exists(await session.look(settings.breadcrumb))
        assert (await site.run("--clear-zk", "--force"))[0] == 0
        assert not _exists(await session.look(settings.scope))
    assert (await site.run())[0] == 3


@pytest.mark.row("W21")
async def test_w21_the_prompt_takes_yes_no_and_the_end_of_input(site: Site) -> None:
    settings = _settings(site)
    async with _inside(settings) as session:
        await session.create(settings.breadcrumb, encode(NN2))
        for typed in ("", "n\n", "perhaps\nNO\n", "perhaps\n"):
            code, said = await site.run("--clear-zk", typed=typed)
            assert (code, "Proceed clearing" in said) == (2, True)
        assert _exists(await session.look(settings.breadcrumb))
        code, said = await site.run("-formatZK", typed="maybe\nYes\n")
        assert (code, "Invalid input: maybe" in said) == (0, True)
        assert _exists(await session.look(settings.scope))
        assert not _exists(await session.look(settings.breadcrumb))
        assert (await site.run("--clear-zk", typed="Y\n"))[0] == 0
        assert not _exists(await session.look(settings.scope))
        code, said = await site.run("--clear-zk")
        assert (code, "There is no" in said) == (0, True)


@pytest.mark.row("W21")
async def test_w21_others_below_the_same_parent_are_left_alone(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    ours, theirs = Site(tmp_path, zookeeper.connect), Site(tmp_path, zookeeper.connect)
    async with (
        _inside(_settings(ours)) as session,
        _inside(_settings(theirs)),
    ):
        parent = "/hadoop-ha"
        before = await session.acl(parent)
        closed = "world:anyone:cdr"
        for option in ("--format-zk", "--clear-zk"):
            assert (await ours.run(option, "--force", "-D", f"ha.zookeeper.acl={closed}"))[0] == 0
        assert _exists(await session.look(_settings(theirs).scope))
        assert await session.acl(parent) == before


@pytest.mark.row("W21")
async def test_w21_check_tells_what_lies_there_and_whether_we_may_write(site: Site) -> None:
    site.values["ha.zookeeper.acl"] = "auth::rwcda"
    site.values["ha.zookeeper.auth"] = "digest:hdfs:right"
    code, said = await site.run("--check-zk")
    assert (code, "(not there)" in said, "--format-zk" in said) == (3, True, True)
    assert (await site.run("--format-zk"))[0] == 0
    code, said = await site.run("--check-zk")
    assert code == 0
    assert "lock held by:     nobody" in said
    assert "we may write:     yes" in said
    assert "znodes in it:     none" in said  # the probe has left nothing
    site.values["ha.zookeeper.auth"] = "digest:hdfs:wrong"
    code, said = await site.run("--check-zk")
    assert (code, "no rights" in said, "wrong" in said) == (1, True, False)
    site.values["ha.zookeeper.auth"] = "digest:hdfs:right"
    assert (await site.run("--clear-zk", "--force"))[0] == 0


async def test_check_names_the_holder_and_says_when_we_may_only_read(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    site = Site(tmp_path, zookeeper.connect)
    settings = _settings(site)
    async with _inside(settings) as session:
        await session.create(settings.lock, encode(NN2), ephemeral=True)
        await session.create(settings.breadcrumb, b"\xff")
        code, said = await site.run("--check-zk")
        assert code == 0
        assert "lock held by:     nn2 (nn2.example:8020, zkfc port 8019)" in said
        assert "last active:      bytes that cannot be decoded" in said
    async with _inside(settings) as session:
        await session.delete(settings.breadcrumb)
    read_only = Site(tmp_path, zookeeper.connect)
    only = ZooKeeperSettings(
        hosts=zookeeper.connect, session_timeout_seconds=5.0,
        scope=f"/hadoop-ha/{read_only.nameservice}", acl=parse_acl("world:anyone:r"),
    )  # fmt: skip
    async with connected(only, deadline_seconds=WAIT_SECONDS) as session:
        await ensure_parent(session, only)
    code, said = await read_only.run("--check-zk")
    assert (code, "we may write:     NO" in said) == (1, True)
    assert "not as configured" in said


async def test_two_of_them_at_once_are_a_mistake(site: Site) -> None:
    code, said = await site.run("--check-zk", "--clear-zk")
    assert (code, "Give one of" in said) == (1, True)


@pytest.mark.row("W23")
@pytest.mark.parametrize(
    ("acl", "policy", "warned"),
    [
        ("world:anyone:rwcda", "warn", True),
        ("world:anyone:rd", "warn", True),
        ("sasl:hdfs@R:rwcda,world:anyone:c", "warn", True),
        ("world:anyone:r,digest:hdfs:x=:rwcda", "warn", False),
        ("auth::rwcda", "warn", False),
        ("world:anyone:rwcda", "allow", False),
    ],
)
def test_w23_an_acl_open_to_the_world_is_warned_of(
    tmp_path: Path, acl: str, policy: str, warned: bool
) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    overrides = [
        "ha.zookeeper.quorum=zk:2181", f"ha.zookeeper.acl={acl}",
        f"nnha.zookeeper.open-acl={policy}",
    ]  # fmt: skip
    settings = zookeeper_settings(load_configuration(tmp_path, overrides), nameservice="ns1")
    assert bool(settings.warning) is warned


@pytest.mark.row("W23")
@pytest.mark.parametrize(("policy", "told"), [("refuse", "auth::rwcda"), ("maybe", "must be warn")])
def test_w23_or_refused_where_the_operator_wants_that(
    tmp_path: Path, policy: str, told: str
) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    overrides = ["ha.zookeeper.quorum=zk:2181", f"nnha.zookeeper.open-acl={policy}"]
    conf = load_configuration(tmp_path, overrides)
    with pytest.raises(ConfigurationError, match=told):
        zookeeper_settings(conf, nameservice="ns1")
