"""A formatted nameservice in a real ZooKeeper, for the commands that read and write notices."""

from dataclasses import dataclass
from pathlib import Path

from ha.elector.zookeeper.settings import ZooKeeperSettings


@dataclass(frozen=True)
class Scope:
    """A formatted nameservice with an empty configuration folder's worth of keys."""

    conf_dir: Path
    settings: ZooKeeperSettings

    @property
    def words(self) -> tuple[str, ...]:
        parent = self.settings.scope.rsplit("/", 1)[0]
        return (
            "--conf-dir", str(self.conf_dir),
            "-D", f"ha.zookeeper.quorum={self.settings.hosts}",
            "-D", f"ha.zookeeper.parent-znode={parent}",
        )  # fmt: skip
