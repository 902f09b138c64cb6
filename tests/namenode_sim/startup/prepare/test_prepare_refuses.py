"""What a preparation does not do, and how long it goes on asking."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from deploy.local.cluster.ports import free_ports
from ha.daemon.process import ExitWith
from journal.links.remote_node import RemoteNode
from journal.model import Epoch
from namenode_sim.startup.prepare.look import BEGUN, journal_address
from tests.namenode_sim.startup.prepare import prepare_world
from tests.namenode_sim.startup.prepare.prepare_world import AT_ONCE, FOLLOWS, FOUNDS, Killed, Pair
from tests.namenode_sim.startup.startup_world import World, snapshot
from tests.worlds.files import info


@pytest.fixture
async def pair(at: World) -> Pair:
    return Pair(at, [0, *free_ports(4)])


def end_at_a_wait(event: str, fields: Mapping[str, object]) -> None:
    """End a preparation when it begins to wait."""
    if event == "prepare.waits":
        raise Killed(fields["because"])


async def test_who_has_to_wait_says_why_at_once(pair: Pair) -> None:
    with pytest.raises(Killed, match="One NameNode of the nameservice must be given --found"):
        await pair.prepare(2, FOLLOWS, end_at_a_wait)


async def test_nothing_is_founded_where_formatting_is_not_allowed(pair: Pair) -> None:
    before = snapshot(pair.at.folder)
    with pytest.raises(ExitWith, match=r"dfs\.namenode\.support\.allow\.format is false") as no:
        await pair.prepare(1, FOUNDS, keys=["dfs.namenode.support.allow.format=false"])
    assert no.value.code == 3
    assert await pair.cluster_ids() == set()
    assert snapshot(pair.at.folder) == before


async def test_a_peer_of_a_version_that_is_not_known_here_is_not_waited_for(pair: Pair) -> None:
    async with AsyncExitStack() as running:
        await pair.prepare(1, FOUNDS)
        newer = replace(pair.namespace(1), layout_version=-99)
        await pair.serve(1, running, newer)
        with pytest.raises(ExitWith, match="refused: nn1 has layout version -99") as refused:
            await pair.prepare(2, FOLLOWS, end_at_a_wait)
    assert refused.value.code == 3
    assert not any((one / "current").exists() for one in pair.directories(2))


async def test_a_peer_whose_image_cannot_be_had_is_waited_for(pair: Pair) -> None:
    async with AsyncExitStack() as running:
        await pair.prepare(1, FOUNDS)
        await pair.serve(1, running)
        for one in pair.directories(1):
            next((one / "current").glob("fsimage_*0")).unlink()
        with pytest.raises(Killed, match="the image of transaction 0 could not be fetched"):
            await pair.prepare(2, FOLLOWS, end_at_a_wait)
    assert not any((one / "current").exists() for one in pair.directories(2))


async def test_a_founding_that_was_cut_short_is_given_up_once_its_journal_was_promised(
    pair: Pair,
) -> None:
    """Give up: a writer that was promised an epoch may have acknowledged edits."""
    with pytest.raises(Killed):
        await pair.prepare(1, FOUNDS, prepare_world.Steps(kill_before=6))
    host, port = pair.at.nodes.addresses[1]
    remote = RemoteNode(host, port, journal_address(pair.at.place()))
    try:
        founded = await remote.namespace(5.0)
        assert founded is not None
        await remote.new_epoch(founded, Epoch(1), 5.0)
    finally:
        await remote.close()
    with pytest.raises(ExitWith, match="the journal that it made has been written to") as refused:
        await pair.prepare(1, AT_ONCE)
    assert refused.value.code == 3
    assert not any((one / "current").exists() for one in pair.directories(1))


@pytest.mark.parametrize("which", ["current/VERSION", BEGUN])
async def test_ids_that_cannot_be_read_are_refused(pair: Pair, which: str) -> None:
    path = pair.directories(1)[1] / which
    path.parent.mkdir(parents=True)
    path.write_text("namespaceID=x\n")
    before = snapshot(pair.at.folder)
    with pytest.raises(ExitWith, match=f"{path} cannot be used: .*Nothing was changed") as refused:
        await pair.prepare(1, AT_ONCE)
    assert refused.value.code == 3
    assert snapshot(pair.at.folder) == before


async def test_a_journal_that_another_has_founded_meanwhile_is_not_founded_again(
    pair: Pair,
) -> None:
    """Let its first node decide between the two."""

    with pytest.raises(Killed):
        await pair.prepare(1, FOUNDS, prepare_world.Steps(kill_before=3))
    writer = pair.at.writer(info())
    await writer.format()
    await writer.close()
    before = snapshot(pair.at.folder / "journal")
    with pytest.raises(ExitWith, match="has the journal of cluster CID-test"):
        await pair.prepare(1, AT_ONCE)
    assert snapshot(pair.at.folder / "journal") == before
    assert await pair.cluster_ids() == {info().cluster_id}
