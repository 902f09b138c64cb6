"""Whom daemons ask, under which certificate it must answer, and what counts as silence.

Each protocol is called at a server of each role; and the witness's two questions are put to all
that may stand at the other end, with certificates and without.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from ha.conf.keys.security import Mode
from ha.rpc import java_names
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.certificates import now
from ha.security.tls_files import TlsFiles
from ha.service.ha_service import ha_service_protocol
from ha.zkfc.witness.core import SilenceVerdict
from tests.ha.rpc.test_tls import Unwritten
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import CHECK_SECONDS, Authority
from tests.ha.zkfc.test_witness_runner import scene
from tests.ha.zkfc.toy_namenode import HOST, SharedResource, ToyNameNode
from tests.ha.zkfc.zkfc_world import free_port, until

QJOURNAL: Final = "org.apache.hadoop.hdfs.qjournal.protocol"
ASKED_AS: Final = {
    # protocol: whose certificate answers; in brackets which daemons ask
    java_names.CLIENT_PROTOCOL: Role.NAMENODE,  # (commands)
    java_names.HA_SERVICE_PROTOCOL: Role.NAMENODE,  # (ZKFC, NameNode, commands)
    java_names.JOURNAL_WITNESS: Role.NAMENODE,  # (ZKFC)
    java_names.NAMENODE_PROTOCOL: Role.NAMENODE,  # (NameNode)
    java_names.DATANODE_PROTOCOL: Role.NAMENODE,  # (DataNode)
    java_names.DATANODE_LIFELINE_PROTOCOL: Role.NAMENODE,  # (DataNode)
    java_names.ZKFC_PROTOCOL: Role.ZKFC,  # (ZKFC, commands)
    java_names.INTER_DATANODE_PROTOCOL: Role.DATANODE,  # (DataNode)
    java_names.CLIENT_DATANODE_PROTOCOL: Role.DATANODE,  # (NameNode, commands)
    "nnha.journal.JournalNode": Role.JOURNALNODE,  # (NameNode, commands)
    f"{QJOURNAL}.QJournalProtocol": Role.JOURNALNODE,  # (NameNode, commands)
    f"{QJOURNAL}.InterQJournalProtocol": Role.JOURNALNODE,  # (JournalNode)
}
SERVERS: Final = (Role.NAMENODE, Role.ZKFC, Role.JOURNALNODE, Role.DATANODE, Role.OPERATOR)
ASKERS: Final = (Role.ZKFC, Role.NAMENODE, Role.JOURNALNODE, Role.DATANODE, Role.ADMIN)


def test_every_protocol_names_the_role_that_serves_it() -> None:
    named = {
        value
        for name, value in vars(java_names).items()
        if name.endswith("_PROTOCOL") and name != "NO_SUCH_PROTOCOL"
    }
    assert named | {java_names.JOURNAL_WITNESS} <= ASKED_AS.keys()


@asynccontextmanager
async def server(tls: TlsFiles | None, *, namenode: bool = False) -> AsyncIterator[int]:
    """Serve under a certificate, or in plain; a NameNode says that it is active."""
    access = None
    if tls is not None:
        access = AccessControl(
            Mode.STRICT,
            target="test",
            audit=Unwritten(),
            own_uid=1,
            tls=tls,
            uid_of=lambda *_: None,
        )
    toy = ToyNameNode("nn1", SharedResource())
    served = RpcServer([ha_service_protocol(toy)] if namenode else [], access=access)
    try:
        yield await served.start(HOST, 0)
    finally:
        await served.stop()
        if tls is not None:
            tls.stop()


@pytest.mark.parametrize("asked", SERVERS)
async def test_each_protocol_is_spoken_with_its_own_role_alone(asked: Role, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    askers = [authority.holder(role, "asker") for role in ASKERS]
    async with server(authority.holder(asked, "asked")) as port:
        for asker in askers:
            with acting_as(asker, Mode.STRICT):
                for protocol, role in ASKED_AS.items():
                    assert await _spoken(port, protocol) is (role is asked), protocol


async def _spoken(port: int, protocol: str) -> bool:
    try:
        opened = await RpcConnection.open(HOST, port, protocol=protocol, deadline_seconds=20)
    except ConnectFailed as failure:
        return "was called" not in str(failure)
    await opened.close()
    return True


# -- the witness's questions -----------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where an other end is set up."""

    authority: Authority
    asked: Role

    def certified(self, role: Role | None = None) -> TlsFiles:
        return self.authority.holder(role or self.asked, "other")


OtherEnd = Callable[[Place], Any]


def _of_role(role: Role) -> OtherEnd:
    return lambda place: server(place.certified(role))


def _ended(place: Place) -> Any:  # noqa: ANN401 - a context manager
    at = now() - timedelta(days=3)
    folder = place.authority.issue(place.asked, "ended", days=1, at=at)
    return server(TlsFiles(folder, CHECK_SECONDS))


def _of_other_authority(place: Place) -> Any:  # noqa: ANN401 - as above
    other = Authority(place.authority.folder / "elsewhere")
    return server(other.holder(place.asked, "other"))


@asynccontextmanager
async def _listener(*, hangs_up: bool) -> AsyncIterator[int]:
    kept: list[asyncio.StreamWriter] = []

    async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept.append(writer)
        if hangs_up:
            writer.close()

    listening = await asyncio.start_server(accepted, HOST, 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]
        listening.close()
        for writer in kept:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def _silent(_: Place) -> Any:  # noqa: ANN401 - as above
    return _listener(hangs_up=False)


def _hanging_up(_: Place) -> Any:  # noqa: ANN401 - as above
    return _listener(hangs_up=True)


def _closed(_: Place) -> Any:  # noqa: ANN401 - as above
    return nullcontext(free_port())


def _plain(_: Place) -> Any:  # noqa: ANN401 - as above
    return server(None)


SILENCE, ANSWER = SilenceVerdict.UNPROVEN, SilenceVerdict.CALM
CERTIFIED: dict[str, tuple[OtherEnd, SilenceVerdict]] = {
    **{f"a certificate of role {role}": (_of_role(role), ANSWER) for role in SERVERS},
    "an ended certificate": (_ended, ANSWER),
    "a certificate of another authority": (_of_other_authority, ANSWER),
    "no TLS": (_plain, ANSWER),
    "it hangs up": (_hanging_up, ANSWER),
    "it accepts and says nothing": (_silent, SILENCE),
    "the port is closed": (_closed, SILENCE),
}
PLAIN: dict[str, tuple[OtherEnd, SilenceVerdict]] = {
    "it knows no such protocol": (_plain, ANSWER),
    "it hangs up": (_hanging_up, ANSWER),
    "it accepts and says nothing": (_silent, SILENCE),
    "the port is closed": (_closed, SILENCE),
}


@pytest.mark.parametrize("asked", [Role.NAMENODE, Role.ZKFC])
@pytest.mark.parametrize(("other_end", "expected"), CERTIFIED.values(), ids=CERTIFIED)
async def test_what_the_witness_takes_for_silence_under_certificates(
    other_end: OtherEnd, expected: SilenceVerdict, asked: Role, tmp_path: Path
) -> None:
    """Keep the other of the two closed, so that this one decides."""
    authority = Authority(tmp_path)
    with acting_as(authority.holder(Role.ZKFC, "nn2"), Mode.STRICT):
        async with other_end(Place(authority, asked)) as port:
            await _looks(asked, port, expected)


@pytest.mark.parametrize("asked", [Role.NAMENODE, Role.ZKFC])
@pytest.mark.parametrize(("other_end", "expected"), PLAIN.values(), ids=PLAIN)
async def test_what_the_witness_takes_for_silence_without(
    other_end: OtherEnd, expected: SilenceVerdict, asked: Role, tmp_path: Path
) -> None:
    async with other_end(Place(Authority(tmp_path), asked)) as port:
        await _looks(asked, port, expected)


async def _looks(asked: Role, port: int, expected: SilenceVerdict) -> None:
    closed = free_port()
    ports = (port, closed) if asked is Role.NAMENODE else (closed, port)
    async with scene(ours=False, ports=ports) as (made, witness):
        await until(lambda: made.connects.count(port) >= 3, "three looks")
        await until(lambda: witness.verdict is expected, f"the verdict {expected.name}")
        assert made.removed == []
