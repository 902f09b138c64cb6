"""What a running NameNode takes over from changed files, and that it has an effect."""

from pathlib import Path
from typing import Any

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.keys.key import Key
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL
from ha.rpc.protocol import Call
from journal.model import LAYOUT_VERSION, NamespaceInfo, TxId
from namenode_sim.datanode_protocol.keeper import Keeper, Standing
from namenode_sim.process.datanodes import LIVE_KEYS, keeper_rules, live_changes
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, serve

INFO = NamespaceInfo(LAYOUT_VERSION, 1, "CID-1", 0, "BP-1")
CHANGED = {"fs.protected.directories": "/kept", "dfs.protected.subdirectories.enable": "true"}
CHANGED |= {"dfs.namenode.corrupt.block.delete.immediately.enabled": "true"}


class NameNode:
    """A configuration folder, and the parts of a NameNode that change with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write({})
        conf = self.read()
        self.service = serve().face
        self.keeper = Keeper(
            self.service.cluster, keeper_rules(conf, INFO), lambda: Standing(True, TxId(0))
        )
        self.methods = live_changes(conf, INFO, self.keeper, self.service).methods

    def write(self, values: dict[str, str]) -> None:
        rows = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in values.items()
        )
        (self.folder / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")

    def read(self) -> Configuration:
        return load_configuration(self.folder, environment={})

    async def ask(self, method: str, user: str = SUPERUSER) -> Any:  # noqa: ANN401
        found = self.methods[method]
        call = Call("protocol", method, b"client", 1, 0, user, None, "127.0.0.1")
        return await found.handle(call, found.request())

    def shown(self) -> tuple[object, ...]:
        keeper = self.keeper
        return (
            keeper.rules, keeper.leases.rules, keeper.upkeep.redundancy.rules,
            keeper.cluster.stale_seconds, self.service.settings,
        )  # fmt: skip


@pytest.fixture
def namenode(tmp_path: Path) -> NameNode:
    return NameNode(tmp_path)


@pytest.mark.parametrize("key", LIVE_KEYS, ids=lambda key: key.name)
async def test_each_live_key_has_an_effect_and_goes_back(namenode: NameNode, key: Key[Any]) -> None:
    await namenode.ask("startReconfiguration")
    usual = namenode.shown()
    namenode.write({key.name: CHANGED.get(key.name, "47000")})
    await namenode.ask("startReconfiguration")
    status = await namenode.ask("getReconfigurationStatus")
    assert [(one.name, one.errorMessage) for one in status.changes] == [(key.name, "")]
    assert namenode.shown() != usual
    assert namenode.keeper.rules == keeper_rules(namenode.read(), INFO)
    assert namenode.keeper.upkeep.redundancy.rules == namenode.keeper.rules.redundancy
    assert namenode.keeper.leases.rules == namenode.keeper.rules.leases
    namenode.write({})
    await namenode.ask("startReconfiguration")
    assert namenode.shown() == usual


async def test_a_value_that_cannot_be_changes_nothing(namenode: NameNode) -> None:
    usual = namenode.shown()
    namenode.write({"fs.protected.directories": "user/x"})
    await namenode.ask("startReconfiguration")
    status = await namenode.ask("getReconfigurationStatus")
    assert "which is not an absolute path" in status.changes[0].errorMessage
    assert namenode.shown() == usual


async def test_it_is_for_the_superuser(namenode: NameNode) -> None:
    with pytest.raises(RemoteFault) as refused:
        await namenode.ask("startReconfiguration", user="eve")
    assert refused.value.java_class == ACCESS_CONTROL
