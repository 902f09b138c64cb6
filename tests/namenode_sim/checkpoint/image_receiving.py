"""A receiver of images on real directories and sockets, and the NameNode that it asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.security.access_control import AccessControl
from journal.model import Epoch, TxId
from namenode_sim.checkpoint.image_receive import ImageReceiver, Recipient
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.storage import NameStorage, open_name_dirs
from tests.namenode_sim.image.image_world import rich_namespace
from tests.worlds.files import info
from tests.worlds.name_dirs import format_name_dirs

IMAGE = rich_namespace()
TXID = IMAGE.last_applied


@dataclass
class Active:
    """A NameNode's side, as far as the receiver asks."""

    storage: NameStorage
    active: bool = True
    epoch: Epoch | None = Epoch(3)
    written_to: TxId = TXID
    follows_to: TxId | None = None
    fewest_inodes: int = 0
    got: list[tuple[TxId, int]] = field(default_factory=list)

    def receiver(self, **settings: float) -> ImageReceiver:
        recipient = Recipient(
            active=lambda: self.active,
            epoch=lambda: self.epoch,
            written_to=lambda: self.written_to,
            received=lambda txid, copies: self.got.append((txid, copies)),
            follows_to=lambda: self.follows_to,
            fewest_inodes=lambda: self.fewest_inodes,
        )
        return ImageReceiver(self.storage, recipient, **settings)  # type: ignore[arg-type]

    def files(self) -> list[str]:
        return sorted(
            f"{path.parent.parent.name}/{path.name}"
            for directory in self.storage.directories
            for path in (directory / "current").glob("fsimage*")
            if f"{TXID}" in path.name
        )


@asynccontextmanager
async def receiving(
    folder: Path, access: AccessControl | None = None, **settings: float
) -> AsyncIterator[tuple[Active, HostPort]]:
    directories = [folder / "one", folder / "two"]
    format_name_dirs(directories, info(), Namespace.empty("hdfs"))
    storage = open_name_dirs(directories)
    active = Active(storage)
    route = active.receiver(**settings).route()
    http = Endpoint(status=dict, healthy=lambda: None, routes=lambda: (route,), access=access)
    port = await http.start("localhost", 0)
    try:
        yield active, HostPort("localhost", port)
    finally:
        await http.stop()
        storage.close()
    assert not storage.in_work, "nothing is kept from a purge any more"
