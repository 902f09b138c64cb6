"""What cannot be undone, where a NameNode is active, may be, or is surely not."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from ha.conf.topology import HostPort, NameNodeAddress
from ha.daemon.process import ExitWith
from ha.rpc.errors import RemoteFault
from ha.rpc.server import RpcServer
from ha.service.errors import AccessDenied
from ha.service.ha_service import ha_service_protocol
from ha.service.model import ServiceState, ServiceStatus
from namenode_sim.startup.beside_active import refuse_active
from namenode_sim.startup.format import format_all
from namenode_sim.startup.shared_edits import initialize_shared_edits
from namenode_sim.transfer.peers import look_for_active
from tests.namenode_sim.startup.startup_world import FORCE, World, in_use, snapshot
from tests.namenode_sim.startup.test_format_all import OTHER, write_journal
from tests.worlds.files import info

HOST = "127.0.0.1"


class Answering:
    """A NameNode that answers each question with the same state, or refuses it."""

    def __init__(self, answer: ServiceState | Exception) -> None:
        self._answer = answer

    async def status(self) -> ServiceStatus:
        if isinstance(self._answer, Exception):
            raise self._answer
        return ServiceStatus(self._answer, ready_to_become_active=True)


@asynccontextmanager
async def peer(answer: ServiceState | Exception) -> AsyncIterator[int]:
    server = RpcServer([ha_service_protocol(Answering(answer))])  # type: ignore[arg-type]
    try:
        yield await server.start(HOST, 0)
    finally:
        await server.stop()


def address(port: int, host: str = HOST) -> NameNodeAddress:
    rpc, off = HostPort(host, port), HostPort(HOST, 0)
    return NameNodeAddress("ns1", "nn2", rpc, rpc, off, off, off, rpc)


STARTING = RemoteFault("org.apache.hadoop.ipc.RetriableException", "still starting")
ANSWERS: dict[str, tuple[Any, bool, bool]] = {
    "active": (ServiceState.ACTIVE, True, False),
    "standby": (ServiceState.STANDBY, False, False),
    "still starting": (STARTING, False, False),
    "a refusal": (AccessDenied("not from you"), False, True),
}


@pytest.mark.parametrize(("answer", "active", "unknown"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_what_an_answer_shows(answer: Any, active: bool, unknown: bool) -> None:  # noqa: ANN401
    async with peer(answer) as port:
        sight = await look_for_active([address(port)], deadline_seconds=20)
    assert (bool(sight.active), bool(sight.unknown)) == (active, unknown)


async def test_a_refused_connection_shows_that_none_runs() -> None:
    with socket.socket() as free:
        free.bind((HOST, 0))
        sight = await look_for_active([address(free.getsockname()[1])], deadline_seconds=20)
    assert (sight.active, sight.unknown) == ((), ())


async def test_silence_and_a_name_without_an_address_show_nothing() -> None:
    with socket.socket() as hung:
        hung.bind((HOST, 0))
        hung.listen()
        port = hung.getsockname()[1]
        sight = await look_for_active(
            [address(port), replace(address(1, "no-such-host.invalid"), namenode="nn3")],
            deadline_seconds=0.3,
        )
    assert sight.active == ()
    assert [reason.split()[0] for reason in sight.unknown] == ["nn2", "nn3"]


def beside(at: World, port: int) -> Any:  # noqa: ANN401
    return replace(at.place(), peers=(address(port),))


async def test_where_it_is_not_known_nothing_is_erased_though_it_be_forced(at: World) -> None:
    """The command says how to leave out a NameNode whose host is off for certain."""
    in_use(at.name_dir)
    await write_journal(at, info())
    before = snapshot(at.name_dir)
    async with peer(AccessDenied("not from you")) as port:
        place = beside(at, port)
        for command in (
            format_all(at.conf(), place, OTHER, force=True),
            initialize_shared_edits(at.conf(), place, FORCE),
        ):
            with pytest.raises(ExitWith, match="is active is not known: nn2 ") as refused:
                await command
            assert "-D dfs.ha.namenodes.ns1=ID" in refused.value.message
    assert snapshot(at.name_dir) == before
    assert len(await at.journal_ops(info())) == 2


@pytest.mark.parametrize("force", [False, True])
async def test_where_nothing_would_be_erased_it_need_not_be_known(at: World, force: bool) -> None:
    async with peer(AccessDenied("not from you")) as port:
        await format_all(at.conf(), beside(at, port), OTHER, force=force)


async def test_each_command_says_why_it_must_not_be() -> None:
    async with peer(ServiceState.ACTIVE) as port:
        place: Any = type("Place", (), {"address": address(port), "peers": ()})()
        for erases in (True, False):
            with pytest.raises(
                ExitWith, match="a NameNode of ns1 is active, and so not"
            ) as refused:
                await refuse_active(place, code=7, because="and so not", erases=erases)
            assert refused.value.code == 7


async def test_no_connection_and_no_task_is_left() -> None:
    before = asyncio.all_tasks()
    async with peer(ServiceState.STANDBY) as port:
        await look_for_active([address(port)] * 5, deadline_seconds=20)
    assert asyncio.all_tasks() == before
