"""What was only seen takes the read lease; what a call has written itself does not."""

from collections.abc import Awaitable, Callable

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, prepared

Action = Callable[[Served], Awaitable[object]]
SEEN: dict[str, Action] = {
    "a status": lambda s: s.call("getFileInfo", src="/d"),
    "a status of nothing": lambda s: s.call("getFileInfo", src="/none"),
    "a listing": lambda s: s.call("getListing", src="/", startAfter=b"", needLocation=False),
    "a content summary": lambda s: s.call("getContentSummary", path="/"),
    "a content summary of nothing": lambda s: s.call("getContentSummary", path="/none"),
    "a write that changes nothing": lambda s: s.mkdirs("/d"),
    "a write that is refused": lambda s: s.mkdirs("/f/below-a-file"),
}


@pytest.mark.parametrize("action", SEEN.values(), ids=SEEN.keys())
async def test_a_superseded_active_does_not_answer(action: Action) -> None:
    served = await prepared()
    served.log.superseded = True
    with pytest.raises(RemoteFault) as fault:
        await action(served)
    assert fault.value.java_class == STANDBY_EXCEPTION


async def test_an_edit_of_the_call_s_own_needs_no_lease() -> None:
    served = await prepared()
    served.log.superseded = True
    await served.mkdirs("/new")
