"""Which users may ask a controller for something."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.conf.topology import HostPort
from ha.security.lists.access_list import AccessList, groups_here
from ha.service.errors import AccessDenied
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from ha.zkfc.settings.settings import ZkfcSettings, zkfc_settings
from tests.ha.zkfc.zkfc_world import Node, World, Worlds

LISTS = {
    "": AccessList(),
    " ": AccessList(),
    "*": AccessList(everybody=True),
    " * ": AccessList(everybody=True),
    "ann *": AccessList(everybody=True),
    "a*": AccessList(frozenset({"a*"})),
    "ann,*": AccessList(frozenset({"ann", "*"})),
    "ann,bob": AccessList(frozenset({"ann", "bob"})),
    "ann, ops": AccessList(frozenset({"ann"}), frozenset({"ops"})),
    " ops,hdfs": AccessList(frozenset(), frozenset({"ops", "hdfs"})),
}


@pytest.mark.parametrize(("text", "read"), LISTS.items(), ids=LISTS.keys())
def test_hadoops_access_lists(text: str, read: AccessList) -> None:
    assert AccessList.parse(text) == read


async def test_groups_are_asked_for_only_where_they_decide() -> None:
    asked: list[str] = []

    async def groups_of(user: str) -> frozenset[str]:
        asked.append(user)
        return frozenset({"ops"})

    assert await AccessList.parse("ann ops").admits("ann", groups_of)
    assert await AccessList.parse("*").admits("bob", groups_of)
    assert not await AccessList.parse("ann").admits("bob", groups_of)
    assert asked == []
    assert await AccessList.parse("ann ops").admits("bob", groups_of)
    assert not await AccessList.parse("ann other").admits("bob", groups_of)
    assert asked == ["bob", "bob"]


async def test_this_machines_groups_are_known_and_strangers_have_none() -> None:
    assert await groups_here(pwd.getpwuid(os.getuid()).pw_name)
    assert await groups_here("no-such-user-anywhere") == frozenset()


def test_the_service_level_list_counts_only_with_authorization(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration></configuration>")
    (tmp_path / "hdfs-site.xml").write_text("<configuration></configuration>")
    values = {
        "dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "nn1,nn2", "dfs.ha.namenode.id": "nn1",
        "dfs.namenode.rpc-address.ns.nn1": "127.0.0.1:1",
        "dfs.namenode.rpc-address.ns.nn2": "127.0.0.1:2",
        "ha.zookeeper.quorum": "127.0.0.1:3",
        "security.zkfc.protocol.acl": "ann", "dfs.cluster.administrators": "bob ops",
    }  # fmt: skip

    def settings(authorization: str) -> ZkfcSettings:
        given = {**values, "hadoop.security.authorization": authorization}
        return zkfc_settings(load_configuration(tmp_path, [f"{k}={v}" for k, v in given.items()]))

    assert settings("false").protocol_users.everybody
    assert settings("true").protocol_users == AccessList(frozenset({"ann"}))
    assert settings("true").administrators == AccessList(frozenset({"bob"}), frozenset({"ops"}))


async def cede(node: Node, user: str) -> None:
    address = HostPort("127.0.0.1", node.zkfc.port)
    client = await ZkfcClient.open(address, deadline_seconds=10.0, user=user)
    try:
        await client.cede_active(0, deadline_seconds=10.0)
    finally:
        await client.close()


@pytest.mark.zookeeper
async def test_only_administrators_and_the_own_user_may_ask(worlds: Worlds) -> None:
    async with worlds() as here:
        one = await _guarded(here, AccessList(frozenset({"ann"})), AccessList(everybody=True))
        await cede(one, "ann")
        await cede(one, one.zkfc._settings.user)
        with pytest.raises(
            AccessDenied, match=r"mallory.*cedeActive.*dfs\.cluster\.administrators"
        ):
            await cede(one, "mallory")
        client = await ZkfcClient.open(
            HostPort("127.0.0.1", one.zkfc.port), deadline_seconds=10.0, user="mallory"
        )
        with pytest.raises(AccessDenied, match="gracefulFailover"):
            await client.graceful_failover(deadline_seconds=10.0)
        await client.close()
        assert one.namenode.state is ServiceState.ACTIVE


@pytest.mark.zookeeper
async def test_nobody_has_a_controller_stay_away_for_weeks(worlds: Worlds) -> None:
    async with worlds() as here:
        here.settings_hook = lambda settings: replace(settings, max_cede_seconds=0.2)
        one = await here.add("nn1")
        await here.start(one)
        await here.active(one)
        client = await ZkfcClient.open(HostPort("127.0.0.1", one.zkfc.port), deadline_seconds=10.0)
        await client.cede_active(2**31 - 1, deadline_seconds=10.0)  # 24 days
        await client.close()
        await here.active(one)  # by itself
        assert [what.partition(" ")[0] for what in one.namenode.seen][-2:] == ["standby", "active"]


@pytest.mark.zookeeper
async def test_the_service_level_list_applies_first(worlds: Worlds) -> None:
    async with worlds() as here:
        both = AccessList(frozenset({"ann", "bob"}))
        one = await _guarded(here, both, AccessList(frozenset({"bob"})))
        await cede(one, "bob")
        for user in ("ann", one.zkfc._settings.user):
            with pytest.raises(AccessDenied, match=r"security\.zkfc\.protocol\.acl"):
                await cede(one, user)


async def _guarded(here: World, administrators: AccessList, protocol_users: AccessList) -> Node:
    here.settings_hook = lambda settings: replace(
        settings, administrators=administrators, protocol_users=protocol_users
    )
    one = await here.add("nn1")
    await here.start(one)
    await here.active(one)
    return one
