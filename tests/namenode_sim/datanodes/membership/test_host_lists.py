"""What the hosts files say of a DataNode, as Hadoop reads them."""

import json

import pytest

from namenode_sim.datanodes.errors import BadHosts
from namenode_sim.datanodes.membership.admin import SERVICE, Asked, Kind
from namenode_sim.datanodes.membership.host_lists import (
    ALL_HOSTS,
    HostLists,
    json_lists,
    text_lists,
)
from namenode_sim.datanodes.model import DatanodeId

FILES = ("/etc/include", "/etc/exclude")
DECOMMISSION = Asked(Kind.DECOMMISSION)


def datanode(host: str = "dn1.example", ip: str = "10.0.0.1", port: int = 9866) -> DatanodeId:
    return DatanodeId("uuid", ip, host, port, 9864, 9867)


@pytest.mark.parametrize(
    ("include", "may"),
    [
        pytest.param("", True, id="an empty list lets all in"),
        pytest.param("# nothing\n\n", True, id="so do comments"),
        pytest.param("dn1.example", True, id="by name"),
        pytest.param("DN1.Example", True, id="in capitals"),
        pytest.param("10.0.0.1", True, id="by address"),
        pytest.param("other dn1.example:9866 # both on a line", True, id="with its port"),
        pytest.param("dn1.example:1", False, id="another port"),
        pytest.param("dn1.example:0", True, id="port 0 is any"),
        pytest.param("dn1.example:1\n10.0.0.1:9866\n", True, id="one of two entries"),
        pytest.param("other # dn1.example", False, id="a comment names none"),
        pytest.param("alias", True, id="by a name of its address"),
        pytest.param("alias:9866", True, id="that with its port"),
    ],
)
def test_who_may_register(include: str, *, may: bool) -> None:
    lists = text_lists(include, "", FILES)
    found = HostLists(lists.included, lists.marked, {"alias": frozenset({"10.0.0.1"})})
    assert found.includes(datanode()) is may


def test_who_calls_itself_by_a_listed_name_is_let_in_from_its_address_only() -> None:
    lists = text_lists("dn1.example", "dn1.example", FILES)
    found = HostLists(lists.included, lists.marked, {"dn1.example": frozenset({"10.0.0.1"})})
    assert found.includes(datanode())
    stranger = datanode(ip="10.0.0.66")
    assert not found.includes(stranger)
    assert found.asked(stranger) == DECOMMISSION
    assert found.unseen([stranger])[0].ip == "10.0.0.1"


def test_an_address_of_version_6_has_colons_and_may_have_a_port() -> None:
    six = datanode(ip="fd00::1")
    for text in ("fd00::1", "[fd00::1]", "[fd00::1]:9866"):
        assert text_lists(text, "", FILES).includes(six)
    assert not text_lists("[fd00::1]:1", "", FILES).includes(six)


def test_who_is_excluded_may_register_and_is_to_be_decommissioned() -> None:
    lists = text_lists("", "dn1.example", FILES)
    assert lists.includes(datanode())
    assert lists.asked(datanode()) == DECOMMISSION
    assert lists.asked(datanode("dn2.example", "10.0.0.2")) is SERVICE
    assert ALL_HOSTS.asked(datanode()) is SERVICE
    assert ALL_HOSTS.includes(datanode())


@pytest.mark.parametrize("word", ["dn1:x", "dn1:99999", ":9866", "dn1:-1", "[fd00::1]x9", "dn1:²"])
def test_a_bad_entry_is_refused_with_its_line(word: str) -> None:
    with pytest.raises(BadHosts, match=r"/etc/exclude, line 2: .* is no host or host:port.*stay"):
        text_lists("", f"ok\n{word}\n", FILES)


def one(host: str = "dn1.example", **more: object) -> dict[str, object]:
    return {"hostName": host} | more


JSON_CASES = {
    "an empty file": ([], True, SERVICE),
    "only who leaves is named: all others may register": (
        [one("other", adminState="DECOMMISSIONED")], True, SERVICE,
    ),
    "one in service is named, and not this": ([one("other")], False, SERVICE),
    "in service": ([one(adminState="NORMAL")], True, SERVICE),
    "in service without a state": ([one()], True, SERVICE),
    "without a state by null": ([one(adminState=None)], True, SERVICE),
    "decommissioned": ([one(adminState="DECOMMISSIONED"), one("other")], True, DECOMMISSION),
    "at its port": ([one(port=9866, adminState="DECOMMISSIONED")], True, DECOMMISSION),
    "at another port": ([one(port=1, adminState="DECOMMISSIONED")], True, SERVICE),
    "maintenance for ever": (
        [one(adminState="IN_MAINTENANCE")], True, Asked(Kind.MAINTENANCE),
    ),
    "maintenance until": (
        [one(adminState="IN_MAINTENANCE", maintenanceExpireTimeInMS=5)],
        True,
        Asked(Kind.MAINTENANCE, 5),
    ),
    "Hadoop's number for ever": (
        [one(adminState="IN_MAINTENANCE", maintenanceExpireTimeInMS=2**63 - 1)],
        True,
        Asked(Kind.MAINTENANCE),
    ),
    "maintenance goes before decommissioning": (
        [one(adminState="DECOMMISSIONED"), one("10.0.0.1", adminState="IN_MAINTENANCE")],
        True,
        Asked(Kind.MAINTENANCE),
    ),
    "other fields are Hadoop's": (
        [one(upgradeDomain="u1", adminState="DECOMMISSIONED")], True, DECOMMISSION,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "may", "asked"), JSON_CASES.values(), ids=JSON_CASES)
def test_the_file_in_json(entries: list[object], asked: Asked, *, may: bool) -> None:
    older = "\n".join(map(json.dumps, entries))  # as Hadoop wrote it at first
    for text in (json.dumps(entries), older):
        lists = json_lists(text, "f")
        assert lists.includes(datanode()) is may
        assert lists.asked(datanode()) == asked


@pytest.mark.parametrize(
    "text",
    ["[", "[1]", '{"hostName": ""}', '{"hostName": 1}', '[{"port": 1}]', '{"hostName": "a"} x',
     '[{"hostName": "a", "adminState": "GONE"}]', '[{"hostName": "a", "port": 99999}]',
     '[{"hostName": "a", "port": true}]', "[" * 5000,
     '[{"hostName": "a", "maintenanceExpireTimeInMS": "soon"}]'],
)  # fmt: skip
def test_what_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(BadHosts, match="f: "):
        json_lists(text, "f")


def test_who_is_included_and_never_came() -> None:
    lists = text_lists("dn1.example dn2.example:9866 dn3.example", "", FILES)
    seen = [datanode(), datanode("dn2.example", "10.0.0.2", 1)]
    found = HostLists(lists.included, (), {"dn3.example": frozenset({"10.0.0.3"})}).unseen(seen)
    assert [(one.host, one.ip, one.transfer_port) for one in found] == [
        ("dn2.example", "dn2.example", 9866), ("dn3.example", "10.0.0.3", 9866),
    ]  # fmt: skip
    assert ALL_HOSTS.unseen(seen) == []
    assert lists.names() == {"dn1.example", "dn2.example", "dn3.example"}
