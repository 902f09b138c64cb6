"""From whom a standby is bootstrapped, and what of him is not taken."""

import hashlib
from pathlib import Path

import pytest

from deploy.local.cluster.ports import free_ports
from ha.daemon.process import ExitWith
from journal.model import TxId
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.bootstrap import Bootstrapped, bootstrap_standby
from namenode_sim.startup.questions import Consent
from namenode_sim.storage.storage import open_name_dirs
from namenode_sim.transfer.namenode_protocol import Facts
from tests.namenode_sim.startup.startup_world import FORCE, NEVER_ASK, World, in_use, peer, snapshot
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs


def facts(last: int = 0, layout: int = -65) -> Facts:
    return Facts(info(layout), TxId(0), TxId(last), upgrade_finalized=True, rolling_upgrade=False)


def saved(directory: Path) -> Path:
    format_name_dirs([directory], info(), Namespace.empty("hdfs"))
    return directory


async def bootstrap(at: World, overrides: list[str], consent: Consent = NEVER_ASK) -> Bootstrapped:
    conf, place = at.conf(*overrides), at.place(*overrides)
    return await bootstrap_standby(conf, place, consent, check_shared_edits=False)


def third(overrides: list[str]) -> list[str]:
    """Let nn2 answer as nn3, with no server at nn2's address."""
    (port,) = free_ports(1)
    return [
        *(one.replace("nn2", "nn3") for one in overrides),
        "dfs.ha.namenodes.ns1=nn1,nn2,nn3",
        f"dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:{port}",
    ]


async def test_the_first_peer_that_answers_is_the_source(at: World, tmp_path: Path) -> None:
    async with peer(facts(last=9), saved(tmp_path / "peer")) as overrides:
        done = await bootstrap(at, third(overrides))
    assert (done.source.namenode, done.namespace, done.image_txid, done.last_txid) == (
        "nn3",
        info(),
        0,
        9,
    )
    storage = open_name_dirs([at.name_dir])
    assert storage.namespace_info == info()
    storage.close()


async def test_where_nobody_answers_each_is_told(at: World) -> None:
    asked = ["dfs.namenode.http-address.ns1.nn2=127.0.0.1:2"]
    with pytest.raises(ExitWith) as refused:
        await bootstrap(at, third([*asked, "dfs.namenode.rpc-address.ns1.nn2=127.0.0.1:1"]))
    assert refused.value.code == 2
    assert "nothing was changed. Start one first. nn2 at 127.0.0.1:" in refused.value.message
    assert "; nn3 at 127.0.0.1:1: " in refused.value.message


async def test_without_another_namenode_there_is_nobody_to_ask(at: World) -> None:
    with pytest.raises(ExitWith, match=r"dfs\.ha\.namenodes\.ns1 names no other") as refused:
        await bootstrap(at, ["dfs.ha.namenodes.ns1=nn1"])
    assert refused.value.code == 2


@pytest.mark.parametrize(
    ("layout", "taken"), [(-51, False), (-52, True), (-67, True), (-68, False)]
)
async def test_layouts_that_are_known_here_are_taken(
    at: World, tmp_path: Path, layout: int, taken: bool
) -> None:
    async with peer(facts(layout=layout), saved(tmp_path / "peer")) as overrides:
        if taken:
            await bootstrap(at, overrides)
            storage = open_name_dirs([at.name_dir])
            assert storage.namespace_info == info(layout)
            storage.close()
            return
        with pytest.raises(ExitWith, match=f"layout version {layout}, and we know -52 to -67"):
            await bootstrap(at, overrides)
    assert not at.name_dir.exists()


async def test_an_image_that_cannot_be_loaded_replaces_nothing(at: World, tmp_path: Path) -> None:
    """Offer the bytes that the source has; they are no image."""
    in_use(at.name_dir)
    before = snapshot(at.name_dir)
    source = saved(tmp_path / "peer")
    image = source / "current" / image_name(TxId(0))
    image.write_bytes(b"HDFSIMG1 and nothing else")
    write_digest(image, hashlib.md5(image.read_bytes(), usedforsecurity=False).hexdigest())
    async with peer(facts(), source) as overrides:
        with pytest.raises(ImageError):
            await bootstrap(at, overrides, FORCE)
    assert snapshot(at.name_dir) == before
    assert [path.name for path in at.name_dir.iterdir()] == ["current"]


@pytest.mark.parametrize("agreed", [False, True])
async def test_the_operator_is_asked_before_a_file_system_is_replaced(
    at: World, tmp_path: Path, agreed: bool
) -> None:
    in_use(at.name_dir)
    before = snapshot(at.name_dir)
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return agreed

    async with peer(facts(), saved(tmp_path / "peer")) as overrides:
        if agreed:
            await bootstrap(at, overrides, Consent(force=False, ask=ask))
        else:
            with pytest.raises(ExitWith, match="nothing was changed"):
                await bootstrap(at, overrides, Consent(force=False, ask=ask))
    assert asked == [f"Re-format filesystem in {at.name_dir} ? (Y or N)"]
    assert (snapshot(at.name_dir) == before) is not agreed
