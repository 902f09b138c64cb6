"""Locks of which a standby's controller cannot say whose they are: none is asked, none crashes."""

import pytest

from ha.elector.events import LockSeen
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.outcome import ZnodeFacts
from ha.zkfc.witness.core import SilenceVerdict
from tests.ha.zkfc.test_witness_runner import MADE, STANDBY, scene
from tests.ha.zkfc.toy_namenode import HOST
from tests.ha.zkfc.zkfc_world import until
from tests.log_lines import captured

LATER = MADE + 1


@pytest.mark.parametrize("what", ["gone", "another by now", "nonsense", "our own", "unknown"])
async def test_whose_lock_it_is_must_be_known(what: str) -> None:
    async with scene() as (made, witness):
        await until(lambda: made.looks >= 1, "a look at the first owner")
        reads = 0
        name = {"our own": "nn2", "unknown": "nn9"}.get(what, "nn1")
        content = encode(ActiveNodeInfo("ns", name, HOST, made.owner.port, made.zkfc_port))
        by = MADE if what == "another by now" else LATER

        async def read_lock() -> tuple[bytes, ZnodeFacts] | None:
            nonlocal reads
            reads += 1
            facts = ZnodeFacts(0, ours=False, written_by=by, owner=1)
            return None if what == "gone" else (b"?" if what == "nonsense" else content, facts)

        made.read_lock = read_lock  # type: ignore[method-assign] # counted
        with captured("zkfc.witness.crashed") as crashes:
            witness.observe_step(
                LockSeen(STANDBY.session, ours=False, made=LATER), STANDBY, STANDBY
            )
            await until(lambda: reads >= 1, "a look at the lock")
            looks, connects = made.looks, len(made.connects)
            witness.observe_step(
                LockSeen(STANDBY.session, ours=False, made=LATER + 1), STANDBY, STANDBY
            )
            await until(lambda: reads >= 2, "the next look")
        assert (made.looks, len(made.connects), crashes) == (looks, connects, [])
        assert (made.removed, witness.verdict) == ([], SilenceVerdict.CALM)
