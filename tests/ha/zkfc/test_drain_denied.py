"""A drain whose hand-over is denied by the other controller says so to the operator."""

from dataclasses import replace

import pytest

from ha.elector.zookeeper.znodes import connected
from ha.notices.model import Member
from ha.notices.store import read_members
from ha.zkfc.settings.settings import ZkfcSettings
from tests.ha.zkfc.test_notices import drain
from tests.ha.zkfc.zkfc_world import DEADLINE_SECONDS, Worlds, is_active, until

pytestmark = pytest.mark.zookeeper


def _of_another_user(settings: ZkfcSettings) -> ZkfcSettings:
    """nn2's controller runs as somebody else, and takes no requests of ours."""
    return replace(settings, user="stranger") if settings.own.namenode == "nn2" else settings


async def test_the_denial_is_shown_in_the_members_znode(worlds: Worlds) -> None:
    async with worlds("nn1", "nn2", settings_hook=_of_another_user) as here:
        one, _ = here.nodes
        await drain(here, one)
        async with connected(here.zookeeper, deadline_seconds=10.0) as session:
            shown: dict[str, Member] = {}

            async def look() -> None:
                found = await read_members(session, here.zookeeper)
                shown.update({n: m for n, m in found.items() if isinstance(m, Member)})

            while "nn1" not in shown or not shown["nn1"].hand_over_failure:
                await look()
        assert "Access denied" in shown["nn1"].hand_over_failure
        assert shown["nn2"].user == "stranger"
        assert is_active(one)
        await until(
            lambda: "the last try failed" in one.zkfc.candidacy.kept_because, "its page says so",
            seconds=DEADLINE_SECONDS,
        )  # fmt: skip
