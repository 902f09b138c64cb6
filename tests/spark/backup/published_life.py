"""What is put in place as a whole: a process for the shim that records each on real files.

``main(WHICH, ROOT, LOG, MARKS)`` lives one of LIVES and notes in MARKS how many operations LOG had
when it was done.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from journal.model import TxId
from namenode_sim.checkpoint.publication import publish as publish_image
from namenode_sim.checkpoint.publication import staged
from namenode_sim.image.files import check_digest, image_name
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.storage.storage import open_name_dirs
from spark.backup.create import verify
from spark.backup.model import UNFINISHED
from spark.backup.restore import restore_namespace
from tests.namenode_sim.startup import startup_world, test_bootstrap
from tests.spark.backup.test_folder import INFO, backup_in

IMAGE: Final = image_name(TxId(0))


async def back_up(root: Path) -> None:
    backup_in(root / "backups")


async def merge(root: Path) -> None:
    with staged(root / "out") as stage:
        save_image(Namespace.empty("hdfs"), stage / IMAGE, INFO)
        written = (stage / IMAGE).read_bytes()
        (stage / IMAGE).write_bytes(written)  # by one who leaves them to the system
        publish_image(stage / IMAGE, root / "out")


async def bootstrap(root: Path) -> None:
    with TemporaryDirectory() as elsewhere:
        await _in_world(Path(elsewhere), root, _bootstrap)


async def restore(root: Path) -> None:
    with TemporaryDirectory() as elsewhere:
        await _in_world(Path(elsewhere), root, _restore)


async def _in_world(
    elsewhere: Path,
    root: Path,
    live: Callable[[startup_world.World, Path], Coroutine[Any, Any, None]],
) -> None:
    dirs = ",".join(map(str, directories_of(root)))
    async with startup_world.world(elsewhere, **{"dfs.namenode.name.dir": dirs}) as at:
        await live(at, elsewhere)


async def _bootstrap(at: startup_world.World, elsewhere: Path) -> None:
    saved = test_bootstrap.saved(elsewhere / "peer")
    async with startup_world.peer(test_bootstrap.facts(), saved) as overrides:
        await test_bootstrap.bootstrap(at, overrides, check=False)


async def _restore(at: startup_world.World, elsewhere: Path) -> None:
    backup = backup_in(elsewhere / "backups")
    await restore_namespace(
        at.conf(), at.place(), startup_world.FORCE, backup, *verify(backup), keep_journal=False
    )


LIVES: Final[Mapping[str, Callable[[Path], Coroutine[Any, Any, None]]]] = {
    "a backup": back_up,
    "a merge": merge,
    "a bootstrap": bootstrap,
    "a restore": restore,
}


def directories_of(root: Path) -> list[Path]:
    return [root / name for name in "ab"]


def whole(which: str, root: Path) -> int:
    """Return how many copies of what was put in place there are; raise if one is not whole."""
    match which:
        case "a backup":
            named = [one for one in _in(root / "backups") if not one.name.startswith(UNFINISHED)]
            return len([verify(one) for one in named])
        case "a merge":
            found = [one for one in _in(root / "out") if one.name == IMAGE]
            for one in found:
                check_digest(one)
            return len(found)
        case _:
            found = [one for one in directories_of(root) if (one / "current").exists()]
            for one in found:
                storage = open_name_dirs([one])
                storage.load()
                storage.close()
            return len(found)


def _in(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.is_dir() else ()


def main(which: str, root: Path, log: Path, marks: Path) -> None:
    asyncio.run(LIVES[which](root))
    marks.write_text(str(log.read_bytes().count(b"\n")))
