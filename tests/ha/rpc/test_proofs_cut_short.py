"""Calls that prove themselves by tickets or certificates, with a fault at each await of both ends.

What must come back: connections, tasks, threads, places at the door; what may come out: an answer,
or an error that a caller of RPC knows.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ha.rpc import errors
from ha.rpc.limits import RpcLimits
from ha.security.caller import Role
from ha.security.sasl.mechanism import SaslFailure
from ha.security.tls_files import TlsFiles
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.kerberized import alice, asked, configuration, logged_in, secured_server
from tests.ha.rpc.test_tls import cede, zkfc_server
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.ha.security.kdc import Kdc

GAUGES = ("nnha_rpc_connections", "nnha_rpc_buffered_bytes", "nnha_rpc_calls_in_flight")
KEPT = frozenset({"thread kerberos_", "thread sasl_"})
"""Threads of the pools for steps of a negotiation; they grow to their size."""
UNTIL_LIMIT = frozenset({"ha.rpc.frames.FrameSplitter", "_asyncio.Future", "ha.rpc.wire.Wire"})
"""What uvloop keeps, for at most a minute, of a handshake that was cancelled in its first turns."""
TYPED = (errors.RpcError, errors.RemoteFault, ConnectionError, SaslFailure)


def holdings() -> Mapping[str, float]:
    return {name: REGISTRY.get_sample_value(name) or 0 for name in GAUGES}


async def nothing(_: int) -> None:
    return


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
@pytest.mark.parametrize("protection", ["authentication", "privacy"])
async def test_calls_with_tickets_leave_nothing(
    realm: Kdc, tmp_path: Path, protection: str, fault: Fault
) -> None:
    conf = configuration(realm, tmp_path, {"hadoop.rpc.protection": protection})
    own = alice(conf, realm)

    async def life() -> None:
        async with secured_server(conf) as (port, _, _):
            with logged_in(own):
                assert await asked(port, text="x", times=2) == "alice None kerberos 1"

    cuts = Cuts(life, fault, typed=TYPED, kept=KEPT)
    assert await awaits.cut_at_each_await(cuts, nothing, holdings=holdings) > 10


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
async def test_a_negotiation_that_is_cut_short_ends_its_connection(
    realm: Kdc, tmp_path: Path, fault: Fault
) -> None:
    """Keep the server, whose stop would end what the caller has left open, as would its limit."""
    conf = configuration(realm, tmp_path, {})
    async with secured_server(conf, limits=RpcLimits(handshake_seconds=600)) as (port, _, _):
        with logged_in(alice(conf, realm)):

            async def life() -> None:
                assert await asked(port) == "alice None kerberos 0"

            cuts = Cuts(life, fault, typed=TYPED, kept=KEPT)
            assert await awaits.cut_at_each_await(cuts, nothing, holdings=holdings) > 5


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL])
async def test_calls_with_certificates_leave_nothing(tmp_path: Path, fault: Fault) -> None:
    authority = Authority(tmp_path)
    ours, theirs = authority.issue(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")
    answers: list[str] = []

    async def life() -> None:
        files = TlsFiles(ours, 1)
        try:
            async with zkfc_server(files) as (_, port):
                with acting_as(theirs):
                    answers[:] = await asyncio.gather(cede(port), cede(port))
        finally:
            files.stop()

    async def after(number: int) -> None:
        assert number or answers == ["done", "done"]

    cuts = Cuts(life, fault, typed=TYPED, kept=UNTIL_LIMIT)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 6
