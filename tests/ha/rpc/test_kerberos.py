"""Hadoop RPC with tickets of a real KDC, our client against our server."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from files.errors import NotProven
from files.namenodes import Namenodes
from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.health.core import Health, HealthSettings, Trouble
from ha.health.monitor import HealthMonitor
from ha.rpc.errors import ConnectFailed, ConnectionLost, NoProof, RemoteFault
from ha.rpc.java_names import (
    AUTHORIZATION,
    DATANODE_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    ZKFC_PROTOCOL,
)
from ha.security.caller import ALL_ROLES
from ha.security.kerberos import own
from ha.security.kerberos.admission import ServicePrincipal
from ha.security.kerberos.own import OwnKerberos
from ha.security.sasl import gss
from ha.service.client import ServiceClient
from ha.service.errors import ServiceUnreachable
from ha.service.model import ServiceStatus
from ha.service.no_answer import NoAnswer, why_no_answer
from hadoop.proto.client_namenode_pb2 import MkdirsResponseProto
from tests.ha.rpc.kerberized import QJOURNAL, alice, asked, configuration, logged_in, secured_server
from tests.ha.rpc.wire import eventually
from tests.ha.security.kdc import REALM, Kdc, silent_kdc
from tests.log_lines import captured


async def of_ha(port: int, method: str) -> str:
    return await asked(port, protocol=HA_SERVICE_PROTOCOL, method=method)


@pytest.mark.parametrize("protection", ["authentication", "integrity", "privacy"])
async def test_calls_of_every_size_and_number(realm: Kdc, tmp_path: Path, protection: str) -> None:
    conf = configuration(realm, tmp_path, {"hadoop.rpc.protection": protection})
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm)):
            assert await asked(port) == "alice None kerberos 0"
            assert await asked(port, text="x" * 200_000) == "alice None kerberos 200000"
            assert await asked(port, text="y" * 100, times=300) == "alice None kerberos 100"


async def test_a_caller_without_a_ticket_is_refused(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {})
    async with secured_server(conf) as (port, _, _):
        with pytest.raises((RemoteFault, ConnectionLost), match="SIMPLE authentication is not"):
            await asked(port)
    async with secured_server(conf, Mode.PERMISSIVE) as (port, _, _):
        assert (await asked(port)).endswith("peer-uid 0"), "permissive takes both"


async def test_a_ticket_gives_no_other_name(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {})
    async with secured_server(conf) as (port, lines, _):
        with logged_in(alice(conf, realm)):
            for other in ("bob", "root", "nn", f"nn/localhost@{REALM}", "alice@OTHER", "a/b"):
                with pytest.raises(RemoteFault) as caught:
                    await asked(port, user=other)
                assert caught.value.java_class == AUTHORIZATION
            with pytest.raises(RemoteFault, match=f"alice@{REALM} is not allowed to imperson"):
                await asked(port, user="bob")
            assert await asked(port, user="alice") == "alice None kerberos 0"
        assert {entry.caller.principal for entry in lines.entries} == {f"alice@{REALM}"}


async def test_a_proxy_user_acts_for_those_that_its_rule_names(realm: Kdc, tmp_path: Path) -> None:
    rules = {"hadoop.proxyuser.alice.users": "bob", "hadoop.proxyuser.alice.hosts": "127.0.0.1"}
    conf = configuration(realm, tmp_path, rules)
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm)):
            assert await asked(port, user="bob") == "bob alice kerberos 0"
            with pytest.raises(RemoteFault, match="not allowed to impersonate carol"):
                await asked(port, user="carol")
    conf = configuration(
        realm, tmp_path, {**rules, "hadoop.proxyuser.alice.hosts": "10.0.0.0/8,nowhere.invalid"}
    )
    async with secured_server(conf) as (port, _, _):
        with (
            logged_in(alice(conf, realm)),
            pytest.raises(RemoteFault, match=r"from IP 127\.0\.0\.1"),
        ):
            await asked(port, user="bob")


async def test_roles_are_those_of_the_configured_principals(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {"dfs.cluster.administrators": "bob"})
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm, "nn/localhost")):
            assert await of_ha(port, "monitorHealth") == "nn None kerberos 0"
            assert await of_ha(port, "transitionToObserver") == "nn None kerberos 0"
        with logged_in(alice(conf, realm, "bob")):
            assert await of_ha(port, "transitionToObserver") == "bob None kerberos 0"
        with logged_in(alice(conf, realm, "dn/localhost")), pytest.raises(RemoteFault):
            await of_ha(port, "monitorHealth")
        with (
            logged_in(alice(conf, realm)),
            pytest.raises(RemoteFault, match=r"namenode, zkfc, admin.*whose role is client"),
        ):
            await of_ha(port, "monitorHealth")


async def test_access_lists_count_for_the_connection_and_for_each_call(
    realm: Kdc, tmp_path: Path
) -> None:
    (tmp_path / "hadoop-policy.xml").write_text(
        "<configuration><property><name>security.ha.service.protocol.acl</name>"
        "<value>nn</value></property></configuration>"
    )
    conf = configuration(
        realm,
        tmp_path,
        {"hadoop.security.authorization": "true", "dfs.cluster.administrators": "alice"},
    )
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm, "nn/localhost")):
            assert await of_ha(port, "monitorHealth") == "nn None kerberos 0"
        with logged_in(alice(conf, realm)):
            said = (
                rf"User alice@{REALM} \(auth:KERBEROS\) is not authorized for protocol interface "
                "org.apache.hadoop.ha.HAServiceProtocol: denied by configured ACL"
            )
            with pytest.raises(RemoteFault, match=said):
                await of_ha(port, "monitorHealth")
            with pytest.raises(RemoteFault, match="is not authorized") as caught:
                await asked(port, method="monitorHealth", of=HA_SERVICE_PROTOCOL)
            assert caught.value.java_class == AUTHORIZATION
            assert await asked(port) == "alice None kerberos 0"


async def test_no_common_layer(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {"hadoop.rpc.protection": "privacy"})
    weak = configuration(realm, tmp_path, {"hadoop.rpc.protection": "authentication"})
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(weak, realm)), pytest.raises(ConnectFailed, match="no common"):
            await asked(port)


@pytest.mark.parametrize(
    ("configured", "said"),
    [
        (f"jn/localhost@{REALM}", "Server has invalid Kerberos principal: nn/localhost, expecting"),
        (f"nn/other@{REALM}", "expecting: nn/other@"),
        (f"jn/_HOST@{REALM}", "expecting: jn/_HOST@"),
    ],
)
async def test_a_server_must_be_who_it_is_called(
    realm: Kdc, tmp_path: Path, configured: str, said: str
) -> None:
    conf = configuration(realm, tmp_path, {})
    other = configuration(realm, tmp_path, {"dfs.namenode.kerberos.principal": configured})
    async with secured_server(conf) as (port, lines, _):
        with logged_in(alice(other, realm)), pytest.raises(ConnectFailed, match=said):
            await asked(port)
        assert lines.entries == []


@pytest.mark.parametrize(
    "more",
    [
        {"dfs.namenode.kerberos.principal": f"nn/_HOST@{REALM}"},
        {"dfs.namenode.kerberos.principal": "nn/_HOST"},
        {
            "dfs.namenode.kerberos.principal": f"nn/other@{REALM}",
            "dfs.namenode.kerberos.principal.pattern": f"nn/*@{REALM}",
        },
    ],
)
async def test_hosts_and_patterns_of_servers(
    realm: Kdc, tmp_path: Path, more: dict[str, str]
) -> None:
    conf = configuration(realm, tmp_path, {})
    theirs = configuration(realm, tmp_path, more)
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(theirs, realm)):
            assert await asked(port) == "alice None kerberos 0"


async def test_a_server_without_kerberos_is_not_called(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {})
    async with secured_server(conf) as (port, _, access):
        access.ways = ()
        with logged_in(alice(conf, realm)), pytest.raises(ConnectFailed, match="fall back to SIM"):
            await asked(port)


async def test_a_person_needs_a_ticket_and_is_called_by_it(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = configuration(realm, tmp_path, {})
    own = alice(conf, realm)
    own.principal = own.keytab = None
    async with secured_server(conf) as (port, _, _):
        monkeypatch.setenv("KRB5CCNAME", str(realm.folder / "none"))
        with logged_in(own):
            with pytest.raises(NoProof, match="run kinit"):
                await asked(port)
            async with Namenodes([HostPort("localhost", port)] * 2) as namenodes:
                async with asyncio.timeout(30):
                    with pytest.raises(NotProven, match=r"mkdirs was not .*run kinit"):
                        await namenodes.ask(MkdirsResponseProto, src="/d", seconds=3600)
            monkeypatch.setenv("KRB5CCNAME", str(realm.kinit("bob")))
            assert await asked(port) == "bob None kerberos 0"


async def test_many_at_once(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(realm, tmp_path, {"hadoop.rpc.protection": "privacy"})
    async with secured_server(conf) as (port, _, _):
        with logged_in(alice(conf, realm)):
            found = await asyncio.gather(*(asked(port) for _ in range(40)))
    assert set(found) == {"alice None kerberos 0"}


async def test_no_caller_goes_on_where_a_look_up_fails(realm: Kdc, tmp_path: Path) -> None:
    async def broken(_: str) -> frozenset[str]:
        raise OSError("the directory is gone")

    admins = {"dfs.cluster.administrators": " wheel", "hadoop.security.authorization": "true"}
    conf = configuration(realm, tmp_path, admins)
    async with secured_server(conf, Mode.PERMISSIVE) as (port, _, access):
        assert access.admission is not None
        access.admission = replace(
            access.admission, groups_of=broken, policy={"security.client.protocol.acl": " users"}
        )
        for login in (alice(conf, realm), None):
            with logged_in(login), pytest.raises(ConnectionLost):
                await asked(port)


CONTROL = {
    (QJOURNAL, "newEpoch"): {"nn/localhost"},
    (QJOURNAL, "getEditLogManifest"): {"nn/localhost", "jn/localhost"},
    (ZKFC_PROTOCOL, "cedeActive"): {"nn/localhost"},
    (DATANODE_PROTOCOL, "sendHeartbeat"): {"dn/localhost"},
}


async def test_daemons_may_what_their_kind_may(realm: Kdc, tmp_path: Path) -> None:
    conf = configuration(
        realm, tmp_path, {"dfs.namenode.shared.edits.dir": "qjournal://localhost:8485/ns1"}
    )
    async with secured_server(conf) as (port, _, _):
        for who in ("nn/localhost", "jn/localhost", "dn/localhost", "alice"):
            # The server has the keys of a NameNode, also where another kind is called.
            theirs = alice(conf, realm, who)
            theirs.services = (ServicePrincipal(f"nn/localhost@{REALM}", None, ALL_ROLES),)
            with logged_in(theirs):
                for (protocol, method), allowed in CONTROL.items():
                    if who in allowed:
                        assert "kerberos" in await asked(port, protocol=protocol, method=method)
                        continue
                    with pytest.raises(RemoteFault, match=rf"{method} is for .*{who}@{REALM}"):
                        await asked(port, protocol=protocol, method=method)


def alice_anew(realm: Kdc, folder: Path) -> OwnKerberos:
    """Return a login for which the library keeps no tickets of other tests."""
    realm.make(folder.name)
    return alice(configuration(realm, folder, {}), realm, folder.name)


async def test_good_tickets_are_had_at_once_from_whatever_kdc(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf, share = configuration(realm, tmp_path, {}), own.RENEWED_AT
    login = alice(conf, realm)
    first = login.tickets()
    assert login.tickets() is first

    def due() -> tuple[OwnKerberos, gss.Credentials]:
        login = alice(conf, realm)
        monkeypatch.setattr(own, "RENEWED_AT", 0.0)
        tickets = login.tickets()
        monkeypatch.setattr(own, "RENEWED_AT", share)
        return login, tickets

    (login, first), fresh = due(), alice_anew(realm, tmp_path)
    login.principal, login.keytab = fresh.principal, fresh.keytab  # for whom nothing is kept
    with captured("kerberos.") as logs, silent_kdc(tmp_path, monkeypatch) as ended:
        for _ in range(20):
            assert login.tickets() is first
        assert logs == [], "good tickets are had at once, whatever the KDC does"
        await eventually(lambda: [one.name for one in threading.enumerate()].count("tickets") == 1)
        ended()
        await eventually(lambda: bool(logs))
        assert login.tickets() is first, "it is not tried again at once"
    assert [line["event"] for line in logs] == ["kerberos.not_renewed"]


async def test_a_silent_kdc_says_nothing_of_the_server_and_holds_up_no_fence(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = configuration(realm, tmp_path, {})

    async def probe(port: int) -> ServiceUnreachable:
        with pytest.raises(ServiceUnreachable) as caught:
            await ServiceClient.open(HostPort("localhost", port), deadline_seconds=1)
        return caught.value

    async with secured_server(conf) as (port, _, _):
        with (
            logged_in(alice_anew(realm, tmp_path)),
            silent_kdc(tmp_path, monkeypatch) as ended,
        ):
            found = await asyncio.gather(*(probe(port) for _ in range(20)))
            async with asyncio.timeout(20):
                assert await asyncio.to_thread(lambda: "fenced") == "fenced"
            ended()
    for failure in found:
        assert "our own ticket is waited for" in str(failure)
        assert why_no_answer(failure) is NoAnswer.NOT_ASKED


class Unheard:
    """Listens to a health monitor, and has no use for what it says."""

    def status_reported(self, status: ServiceStatus) -> None: ...

    def health_changed(self, health: Health, reason: str) -> None: ...


@pytest.mark.parametrize("answers", [True, False])
async def test_without_a_ticket_of_ours_a_namenode_counts_as_slow_and_not_as_gone(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    conf = configuration(realm, tmp_path, {})
    own = alice_anew(realm, tmp_path)
    settings = HealthSettings(rpc_timeout_seconds=20 if answers else 0.3)
    async with secured_server(conf) as (port, _, _):
        with logged_in(own), silent_kdc(tmp_path, monkeypatch) as ended:
            if answers:
                ended()  # "Cannot contact any KDC"
            monitor = HealthMonitor(HostPort("localhost", port), settings, Unheard())
            watching = asyncio.create_task(monitor.run())
            try:
                known = Health.NOT_RESPONDING
                await eventually(lambda: monitor.state.health is known, seconds=20)
            finally:
                watching.cancel()
            ended()
    said = "no Kerberos tickets" if answers else "our own ticket is waited for"
    assert said in monitor.state.reason
    assert monitor.state.trouble is Trouble.SLOW
