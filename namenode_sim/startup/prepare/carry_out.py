"""Looks, decides and acts until the directories are ready, it is refused, or time is up.

A founding draws its ids, keeps them in the name directories, and formats one JournalNode after the
other, in the order of their names, none by force.  So of two that found at once, the first node
takes one, and the other becomes its standby; and who is killed in between knows its own work again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.keys.cluster import FORMAT_LAYOUT
from ha.conf.keys.namenode import ALLOW_FORMAT
from ha.conf.own_user import own_user
from ha.daemon.process import ExitWith
from ha.record import dataclass
from hadoop.durable import sync_folder, write_durably
from hadoop.errors import InUse
from journal.errors import JournalError
from journal.links.remote_node import RemoteNode
from journal.model import NamespaceInfo
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup import bootstrap
from namenode_sim.startup.format import new_namespace_info
from namenode_sim.startup.identity import NameNodeIdentity, name_directories
from namenode_sim.startup.prepare.core import decide, identity
from namenode_sim.startup.prepare.look import BEGUN, DENIED, examine, journal_address
from namenode_sim.startup.prepare.model import Bootstrap, Found, Ready, Refuse, Wait
from namenode_sim.startup.questions import Consent
from namenode_sim.storage.format import format_locked, lock_all
from namenode_sim.storage.version_file import version_text

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.5
FORMAT_SECONDS: Final = 10.0
_FOR_LATER: Final = (
    bootstrap.CANNOT_CONNECT,
    bootstrap.FETCH_FAILED,
    bootstrap.ALREADY_FORMATTED,
    bootstrap.EDITS_UNAVAILABLE,
)
_NEVER: Final = Consent(force=False, ask=None)

Step = Callable[[str, Mapping[str, object]], None]
"""Called with each step before it is taken."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What the command line allows; ``cluster_id`` is that of a file system that is founded."""

    may_found: bool
    wait_seconds: float
    cluster_id: str | None = None


def logged(event: str, fields: Mapping[str, object]) -> None:
    log.info(event, **fields)


async def prepare(
    conf: Configuration, place: NameNodeIdentity, allowed: Permission, step: Step = logged
) -> str:
    """Make the name directories ready; what was done, for people.

    Raises:
        ExitWith: 3 with the reason, where it is refused or time is up.  What a founding has done by
            then stays, and the next preparation here goes on with it.
        StorageError, ImageError, OSError: the disk refuses.
    """
    work = _Work(conf, place, allowed, step)
    loop = asyncio.get_running_loop()
    end = loop.time() + allowed.wait_seconds
    told = ""
    while True:
        outcome = await work.once()
        if not isinstance(outcome, Wait):
            return outcome
        if loop.time() >= end:
            raise ExitWith(DENIED, f"refused: {outcome.reason.rstrip('.')}.")
        if outcome.reason != told:
            step("prepare.waits", {"because": outcome.reason})
            told = outcome.reason
        await asyncio.sleep(LOOK_SECONDS)


class _Work:
    """One NameNode's preparation."""

    def __init__(
        self, conf: Configuration, place: NameNodeIdentity, allowed: Permission, step: Step
    ) -> None:
        self._conf = conf
        self._place = place
        self._allowed = allowed
        self._step = step
        self._directories = name_directories(conf, place.address)

    async def once(self) -> Wait | str:
        """Look once and do what is due; return what was done, or why it has to wait."""
        seen = await examine(self._place, self._directories)
        match decide(seen, may_found=self._allowed.may_found):
            case Ready():
                _forget(self._directories)
                return "there is an image here already; nothing was changed"
            case Wait() as wait:
                return wait
            case Refuse(reason):
                raise ExitWith(DENIED, f"refused: {reason}. Nothing was changed.")
            case Bootstrap():
                return await self._bootstrap()
            case Found():
                return await self._found_service()

    async def _bootstrap(self) -> Wait | str:
        self._step("prepare.bootstrap", {})
        try:
            done = await bootstrap.bootstrap_standby(self._conf, self._place, _NEVER)
        except InUse as used:
            return Wait(str(used))
        except ExitWith as failure:
            if failure.code in _FOR_LATER:
                return Wait(failure.message)
            raise ExitWith(DENIED, f"refused: {failure.message}") from failure
        _forget(self._directories)
        return f"copied the image of transaction {done.image_txid} from {done.source.namenode}"

    async def _found_service(self) -> Wait | str:
        if not self._conf.get(ALLOW_FORMAT):
            raise ExitWith(DENIED, f"refused: {ALLOW_FORMAT.name} is false. Nothing was changed.")
        try:
            with lock_all(self._directories):
                # Another preparation of ours may have ended between the look and the lock.
                seen = await examine(self._place, self._directories)
                deed = decide(seen, may_found=self._allowed.may_found)
                if not isinstance(deed, Found):
                    return Wait("what is there has changed meanwhile")
                info = deed.begun or self._draw()
                if (failed := await self._format_journal(info)) is not None:
                    return failed
                self._step("prepare.name_directories", {"cluster_id": info.cluster_id})
                format_locked(self._directories, info, Namespace.empty(own_user()))
                self._step("prepare.done", {"cluster_id": info.cluster_id})
                _forget(self._directories)
        except InUse as used:
            return Wait(str(used))
        service = self._place.address.nameservice
        return f"founded {service}: cluster {info.cluster_id}, block pool {info.block_pool_id}"

    def _draw(self) -> NamespaceInfo:
        info = new_namespace_info(
            self._allowed.cluster_id, layout_version=self._conf.get(FORMAT_LAYOUT)
        )
        for directory in self._directories:
            self._step("prepare.draws", {"cluster_id": info.cluster_id, "in": str(directory)})
            write_durably(directory / BEGUN, version_text(info, comment="a founding under way"))
        return info

    async def _format_journal(self, info: NamespaceInfo) -> Wait | None:
        """Format what is not formatted yet, node after node; return why it stopped, if so."""
        for host, port in sorted(
            self._place.journal_nodes, key=lambda node: f"{node[0]}:{node[1]}"
        ):
            remote = RemoteNode(host, port, journal_address(self._place))
            try:
                theirs = await remote.namespace(FORMAT_SECONDS)
                if theirs is None:
                    self._step("prepare.journal", {"node": remote.name})
                    await remote.format(
                        info, force=False, founding=True, timeout_seconds=FORMAT_SECONDS
                    )
                elif identity(theirs) != identity(info):
                    return Wait(f"{remote.name} was formatted by another founding meanwhile")
            except JournalError as failure:
                return Wait(f"{remote.name} could not be formatted: {failure}")
            finally:
                await remote.close()
        return None


def _forget(directories: Sequence[Path]) -> None:
    """Delete the record of a founding, which is over, or another one was quicker."""
    for directory in directories:
        record = directory / BEGUN
        if record.exists():
            record.unlink()
            sync_folder(directory)
