"""A controller finds another one under whatever address its member znode has."""

from dataclasses import replace

import pytest

from ha.rpc.client import Connection
from ha.rpc.errors import ConnectFailed
from ha.zkfc.handover.membership import Membership
from ha.zkfc.surroundings.surroundings import REAL_WORLD
from tests.ha.zkfc.test_orders import settings
from tests.ha.zkfc.toy_namenode import SharedResource, ToyNameNode


@pytest.mark.parametrize(
    ("written", "host"),
    [("127.0.0.1:8019", "127.0.0.1"), ("nn-b:8019", "nn-b"), ("[::1]:8019", "::1")],
)
async def test_a_hand_over_connects_to(written: str, host: str) -> None:
    asked: list[tuple[str, int]] = []

    async def connect(
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
    ) -> Connection:
        asked.append((host, port))
        raise ConnectFailed("not today")

    own = ToyNameNode("nn1", SharedResource())
    member = Membership(settings(own), None, "1", replace(REAL_WORLD, connect=connect))
    assert "not today" in await member.hand_over_to(written, because="a drain")
    assert asked == [(host, 8019)]


@pytest.mark.parametrize("written", ["", "nn-b", "nn-b:port", "[::1:8019"])
async def test_what_is_no_address_is_a_failure(written: str) -> None:
    member = Membership(settings(ToyNameNode("nn1", SharedResource())), None, "1")
    assert "must be host:port" in await member.hand_over_to(written, because="a drain")
