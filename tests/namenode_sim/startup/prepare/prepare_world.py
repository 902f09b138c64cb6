"""What the tests of preparations share: two NameNodes, and a preparation that is cut short."""

import getpass
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from ha.daemon.http.endpoint import Endpoint
from ha.rpc.server import RpcServer
from ha.service.reconfiguration import check_is
from journal.links.quorum_call import ask_once
from journal.model import NamespaceInfo, TxId
from namenode_sim.startup.prepare.carry_out import Permission, Step, prepare
from namenode_sim.startup.prepare.look import BEGUN, journal_address
from namenode_sim.storage.storage import open_name_dirs
from namenode_sim.storage.version_file import parse_version
from namenode_sim.transfer.image_server import ImageServer
from namenode_sim.transfer.namenode_protocol import Facts, namenode_protocol
from tests.namenode_sim.startup.startup_world import World

FOUNDS = Permission(may_found=True, wait_seconds=30.0)
FOLLOWS = Permission(may_found=False, wait_seconds=30.0)
AT_ONCE = Permission(may_found=True, wait_seconds=0.0)


class Killed(BaseException):
    """Nothing may catch it."""


class Steps:
    """Counts steps, and kills the preparation before one of them."""

    def __init__(self, kill_before: int = 0) -> None:
        self.taken: list[str] = []
        self._kill_before = kill_before

    def __call__(self, event: str, _: Mapping[str, object]) -> None:
        if event == "prepare.waits":
            return
        self.taken.append(event)
        if len(self.taken) == self._kill_before:
            raise Killed


class Pair:
    """nn1 and nn2 of a world, each with two name directories, and what answers for them."""

    def __init__(self, at: World, ports: list[int]) -> None:
        self.at = at
        self._keys = [
            *(f"dfs.namenode.rpc-address.ns1.nn{n}=127.0.0.1:{ports[n]}" for n in (1, 2)),
            *(f"dfs.namenode.http-address.ns1.nn{n}=127.0.0.1:{ports[n + 2]}" for n in (1, 2)),
        ]
        self._ports = ports

    def directories(self, n: int) -> list[Path]:
        return [self.at.folder / f"name{n}{which}" for which in "ab"]

    async def prepare(
        self, n: int, allowed: Permission, steps: Step | None = None, *, keys: Sequence[str] = ()
    ) -> str:
        overrides = [
            *self._keys, *keys, f"dfs.ha.namenode.id=nn{n}",
            f"dfs.namenode.name.dir={','.join(map(str, self.directories(n)))}",
        ]  # fmt: skip
        conf, place = self.at.conf(*overrides), self.at.place(*overrides)
        return await prepare(conf, place, allowed, steps or Steps())

    async def serve(
        self, n: int, running: AsyncExitStack, told: NamespaceInfo | None = None
    ) -> None:
        namespace = told or self.namespace(n)
        facts = Facts(namespace, TxId(0), TxId(0), upgrade_finalized=True, rolling_upgrade=False)
        rpc = RpcServer([namenode_protocol(lambda: facts, check_is(getpass.getuser()))])
        images = ImageServer(namespace, lambda: [self.directories(n)[0]])
        http = Endpoint(status=dict, healthy=lambda: None, routes=images.routes)
        await rpc.start("127.0.0.1", self._ports[n])
        running.push_async_callback(rpc.stop)
        await http.start("127.0.0.1", self._ports[n + 2])
        running.push_async_callback(http.stop)

    def namespace(self, n: int) -> NamespaceInfo:
        found = {
            parse_version((one / "current" / "VERSION").read_bytes()) for one in self.directories(n)
        }
        (namespace,) = found
        assert not any((one / BEGUN).exists() for one in self.directories(n))
        storage = open_name_dirs(self.directories(n))
        try:
            assert storage.load().last_applied == 0
        finally:
            storage.close()
        return namespace

    async def cluster_ids(self) -> set[str]:
        answers = await ask_once(
            self.at.nodes.addresses,
            journal_address(self.at.place()),
            lambda one: one.namespace(5.0),
        )
        assert not any(isinstance(one, Exception) for one in answers.values()), answers
        return {one.cluster_id for one in answers.values() if isinstance(one, NamespaceInfo)}
