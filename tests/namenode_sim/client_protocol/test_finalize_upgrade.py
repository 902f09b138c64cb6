"""finalizeUpgrade: done where there is nothing to do, as in Hadoop, and refused otherwise."""

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from tests.namenode_sim.client_protocol.namenode_in_memory import serve


async def test_without_an_open_upgrade_there_is_nothing_to_do() -> None:
    await serve().call("finalizeUpgrade")


async def test_an_upgrade_of_another_version_is_left_alone() -> None:
    served = serve()
    served.face.upgrade_pending = lambda: True
    with pytest.raises(RemoteFault, match="with the version that upgraded") as refused:
        await served.call("finalizeUpgrade")
    assert refused.value.java_class == IO_EXCEPTION


async def test_it_is_for_the_superuser() -> None:
    with pytest.raises(RemoteFault) as refused:
        await serve().call("finalizeUpgrade", user="eve")
    assert refused.value.java_class == ACCESS_CONTROL
