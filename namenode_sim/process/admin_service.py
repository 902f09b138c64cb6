"""The superuser's calls of ClientProtocol that are no plan of edits: safe mode, rolls, images."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import structlog
from google.protobuf.message import Message

from ha.record import dataclass, field
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION
from ha.rpc.protocol import Call
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import SafeModeActionProto
from journal.model import TxId
from namenode_sim.checkpoint.on_request import NotSaved
from namenode_sim.client_protocol.reads.meta_save import meta_save
from namenode_sim.client_protocol.safe_mode import SafeModeAt, check_on, switch
from namenode_sim.client_protocol.words.errors import FsError, io_error
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.permissions import check_superuser
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import DatanodesError
from namenode_sim.process.answers import Answers

log = structlog.get_logger()

LOG_FOLDERS: Final = ("HADOOP_LOG_DIR", "LOGS_DIRECTORY")
"""The variables that name the directory of logs: Hadoop's, and systemd's for LogsDirectory=."""

LINES_AT_ONCE: Final = 200
"""After this number of lines of a file of metaSave other calls are served."""

Save = Callable[[int, int], Awaitable[bool]]
"""Saves an image, unless the newest is younger than the seconds and lacks at most the edits given.

Raises NotSaved.
"""


class Admit(Protocol):
    """Lets a call in, or raises RemoteFault; ``guarded`` ones only where the active serves."""

    async def __call__(
        self, call: Call, method: str, *, writes: bool, guarded: bool = True
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminService:
    """The calls of one NameNode's operators; ``durable`` waits for all edits that are applied."""

    scene: Callable[[Call], Scene]
    admit: Admit
    answers: Answers
    durable: Callable[[], Awaitable[None]]
    cluster: Cluster
    safe_mode: Callable[[], SafeModeAt]
    roll: Callable[[], TxId]
    refresh: Callable[[], Awaitable[None]]
    save: Save
    upgrade_pending: Callable[[], bool]
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)
    """While it is held safe mode stays as it is."""

    def methods(self) -> Mapping[str, Callable[[Call, Any], Awaitable[Message]]]:
        return {
            "setSafeMode": self._set_safe_mode,
            "refreshNodes": self._refresh_nodes,
            "rollEdits": self._roll_edits,
            "saveNamespace": self._save_namespace,
            "metaSave": self._meta_save,
            "finalizeUpgrade": self._finalize_upgrade,
        }

    async def _refresh_nodes(self, call: Call, _: calls.RefreshNodesRequestProto) -> Message:
        """Read the hosts files and the racks anew, on a standby too."""
        await self.admit(call, "refreshNodes", writes=False, guarded=False)
        try:
            check_superuser(self.scene(call).caller)
            await self.refresh()
        except FsError as error:
            raise RemoteFault(error.java_class, error.message) from error
        except DatanodesError as problem:
            raise RemoteFault(IO_EXCEPTION, str(problem)) from problem
        log.info("hosts.refreshed", user=call.user)
        return calls.RefreshNodesResponseProto()

    async def _meta_save(self, call: Call, request: calls.MetaSaveRequestProto) -> Message:
        """Write what is known of blocks and DataNodes into a file of the log directory."""
        await self.admit(call, "metaSave", writes=False)
        try:
            check_superuser(self.scene(call).caller)
            target = _log_file(request.filename)
        except FsError as error:
            raise RemoteFault(error.java_class, error.message) from error
        lines = list[str]()
        for line in meta_save(self.scene(call)):
            lines.append(f"{line}\n")
            if len(lines) % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
        try:
            text = "".join(lines)
            await asyncio.to_thread(target.write_text, text, "utf-8", "backslashreplace")
        except OSError as problem:
            raise RemoteFault(IO_EXCEPTION, f"{target} was not written: {problem}") from problem
        log.info("metasave.written", user=call.user, path=str(target))
        await self.durable()
        return calls.MetaSaveResponseProto()

    async def _finalize_upgrade(self, call: Call, _: calls.FinalizeUpgradeRequestProto) -> Message:
        """Do nothing where no upgrade is open, as Hadoop does; we make none that could be."""
        await self.admit(call, "finalizeUpgrade", writes=False, guarded=False)
        try:
            check_superuser(self.scene(call).caller)
        except FsError as error:
            raise RemoteFault(error.java_class, error.message) from error
        if self.upgrade_pending():
            raise RemoteFault(
                IO_EXCEPTION,
                "a name directory keeps the state from before an upgrade (previous): finalize it "
                "with the version that upgraded; nothing was changed",
            )
        return calls.FinalizeUpgradeResponseProto()

    async def _roll_edits(self, call: Call, _: calls.RollEditsRequestProto) -> Message:
        """End the segment, so that it can be merged or tailed; answered once it is finalized."""
        await self.admit(call, "rollEdits", writes=True)

        def compute() -> Message:
            check_superuser(self.scene(call).caller)
            self.safe_mode().check("Log not rolled")
            return calls.RollEditsResponseProto(newSegmentTxId=self.roll())

        return await self.answers.answer(compute)

    async def _set_safe_mode(self, call: Call, request: calls.SetSafeModeRequestProto) -> Message:
        """Switch safe mode, on a standby too where the caller does not mind."""
        is_get = request.action == SafeModeActionProto.SAFEMODE_GET
        await self.admit(call, "setSafeMode", writes=not is_get, guarded=request.checked)
        try:
            if is_get:
                answer = switch(self.scene(call).caller, request, self.cluster)
            else:
                async with self._saving:
                    answer = switch(self.scene(call).caller, request, self.cluster)
        except FsError as error:
            raise RemoteFault(error.java_class, error.message) from error
        if not is_get:
            action = SafeModeActionProto.Name(request.action)
            log.info("safe_mode.switched", action=action, user=call.user, on=answer.result)
        await self.durable()
        return answer

    async def _save_namespace(
        self, call: Call, request: calls.SaveNamespaceRequestProto
    ) -> Message:
        """Save an image, on a standby too; safe mode stays on until that is done."""
        await self.admit(call, "saveNamespace", writes=False, guarded=False)
        async with self._saving:
            try:
                check_superuser(self.scene(call).caller)
                check_on(self.cluster)
                self.cluster.safe_mode_stays = True
                saved = await self.save(request.timeWindow, request.txGap)
            except FsError as error:
                raise RemoteFault(error.java_class, error.message) from error
            except NotSaved as failure:
                raise RemoteFault(IO_EXCEPTION, str(failure)) from failure
            finally:
                self.cluster.safe_mode_stays = False
        log.info("namespace.save_requested", user=call.user, saved=saved)
        return calls.SaveNamespaceResponseProto(saved=saved)


def _log_file(name: str) -> Path:
    """Return the path of a file in the directory of logs; Hadoop lets a name lead out of it.

    Raises:
        FsError: if the name is none of a file there, or no directory is known.
    """
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise io_error(f"{name!r} is no name of a file in the log directory")
    folder = next(filter(None, map(os.environ.get, LOG_FOLDERS)), None)
    if folder is None:
        raise io_error("no log directory is known: start the NameNode with HADOOP_LOG_DIR")
    return Path(folder, name)
