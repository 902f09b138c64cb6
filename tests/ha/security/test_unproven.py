"""Callers that the kernel does not identify: by mode they are refused, or let in and counted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import REGISTRY

from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.rpc.packets import PREAMBLE, Status, encode_call, encode_context
from ha.rpc.server import RpcServer
from ha.security.access_control import TOLD_EVERY_SECONDS, AccessControl
from ha.security.audit_text import Entry
from ha.security.caller import unproven
from ha.service.ha_service import ha_service_protocol
from tests.ha.rpc.blocking_client import BlockingClient
from tests.log_lines import captured
from tests.security.strangers import KEY

HOST = "127.0.0.1"


class Lines:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


def silent(mode: Mode, lines: Lines, *, kernel_reports_uids: bool = True) -> AccessControl:
    """Make a kernel that reports nothing of any caller."""
    return AccessControl(
        mode,
        target="t",
        audit=lines,
        kernel_reports_uids=kernel_reports_uids,
        uid_of=lambda *_: None,
    )


@asynccontextmanager
async def page(access: AccessControl) -> AsyncIterator[HostPort]:
    endpoint = Endpoint(status=lambda: {"a": 1}, healthy=lambda: "the disk is full", access=access)
    port = await endpoint.start(HOST, 0)
    try:
        yield HostPort(HOST, port)
    finally:
        await endpoint.stop()


PAGE = '{"a": 1, "security": {"mode": "MODE"}}'
WHY = "GET /status is for namenode, zkfc, admin, operator; nothing proves who calls from 127.0.0.1:"
PAGES: dict[str, tuple[Mode, bool, int, str]] = {
    "auto": (Mode.AUTO, True, 401, WHY),
    "strict": (Mode.STRICT, True, 401, WHY),
    "permissive, and the kernel would have told": (Mode.PERMISSIVE, True, 401, WHY),
    "permissive, and the kernel tells nothing here": (Mode.PERMISSIVE, False, 200, PAGE),
    "insecure": (Mode.INSECURE, True, 200, PAGE),
}


@pytest.mark.parametrize("case", PAGES)
async def test_a_page(case: str) -> None:
    mode, kernel_reports_uids, status, body = PAGES[case]
    async with (
        page(silent(mode, Lines(), kernel_reports_uids=kernel_reports_uids)) as at,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://{at}/status") as answer:
            assert answer.status == status
            assert (await answer.text()).startswith(body.replace("MODE", mode))
        async with session.get(f"http://{at}/health") as answer:
            assert answer.status == 503, "open to everybody"
            assert ("the disk is full" in await answer.text()) is (status == 200)


async def test_a_call_is_refused_before_anything_is_read() -> None:
    lines = Lines()
    server = RpcServer([ha_service_protocol(None)], access=silent(Mode.AUTO, lines))  # type: ignore[arg-type]
    port = await server.start(HOST, 0)
    said = PREAMBLE + encode_context(bytes(16), HA_SERVICE_PROTOCOL, "root", None)
    call = encode_call(KEY, HA_SERVICE_PROTOCOL, "monitorHealth", b"")
    try:
        with BlockingClient(port, said) as client:
            (answer,) = await asyncio.to_thread(client.ask, call)
        assert answer.status is Status.FATAL
        assert answer.message.startswith("nothing proves who calls from 127.0.0.1:")
        assert [(entry.allowed, entry.action) for entry in lines.entries] == [(False, "connect")]
    finally:
        await server.stop()


def counted() -> float:
    labels = {"face": "HAServiceProtocol", "method": "transitionToActive"}
    return REGISTRY.get_sample_value("nnha_auth_unauthenticated_total", labels) or 0.0


def told(now: Callable[[], float]) -> tuple[AccessControl, Lines]:
    lines = Lines()
    return AccessControl(Mode.PERMISSIVE, target="t", audit=lines, clock=now), lines


def test_permissive_counts_each_and_tells_each_address_once_an_hour() -> None:
    now, before = [0.0], counted()
    access, lines = told(lambda: now[0])
    with captured("security.") as logs:
        for at in (0.0, 1.0, TOLD_EVERY_SECONDS):
            now[0] = at
            caller = unproven("10.0.0.9:4000").named("root\n")
            assert not access.refusal(caller, "rpc", "HAServiceProtocol", "transitionToActive")
    assert counted() == before + 3
    assert [log["event"] for log in logs] == ["security.unproven_caller"] * 2
    assert logs[0]["says"] == "root\\n"
    assert [entry.allowed for entry in lines.entries] == [True] * 3
