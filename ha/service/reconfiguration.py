"""ReconfigurationProtocol: the files are read again, and the keys that can change live do.

See docs/reference/rpc.md#reconfigurationprotocol.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import structlog

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.key import Key
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from ha.rpc.proto import reconfiguration_pb2 as pb
from ha.rpc.protocol import Call, Method

log = structlog.get_logger()

Check = Callable[[Call], Awaitable[None]]
"""Returns if the caller is a superuser; raises RemoteFault otherwise."""


@dataclass(frozen=True, slots=True)
class Change:
    """A key whose value in the files is another; ``error`` says why it was not taken."""

    name: str
    old: str
    new: str
    error: str = ""


class Reconfiguration:
    """The configuration that a daemon runs with, and what became of its last change."""

    def __init__(
        self,
        conf: Configuration,
        keys: Sequence[Key[Any]],
        use: Callable[[Configuration], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``conf`` is from files; ``use`` raises ConfigurationError or takes all.

        ``keys`` have no suffix for a nameservice.
        """
        self._conf, self._keys, self._use = conf, keys, use
        self._clock = clock
        self._reading = False
        self._began = self._ended = 0.0
        self.changes: tuple[Change, ...] = ()

    async def start(self) -> None:
        """Read the files and take over what has changed in them, key by key.

        A key that cannot be used keeps its value, and is tried again the next time.

        Raises:
            ConfigurationError: if the files cannot be read; nothing has changed then.
            RemoteFault: if another change is under way.
        """
        assert self._conf.again is not None, "a daemon's configuration is from files"
        if self._reading:
            raise RemoteFault(IO_EXCEPTION, "Another reconfiguration task is running.")
        self._reading, self._began, self._ended, self.changes = True, self._clock(), 0.0, ()
        try:
            found = await asyncio.to_thread(self._conf.again)
            different = [key for key in self._keys if _text(self._conf, key) != _text(found, key)]
            self.changes = tuple(self._change(key, found) for key in different)
        finally:
            self._reading, self._ended = False, self._clock()

    def _change(self, key: Key[Any], found: Configuration) -> Change:
        old, new = _text(self._conf, key), _text(found, key)
        settings = {name: one for name, one in self._conf.settings.items() if name != key.name}
        if key.name in found.settings:
            settings[key.name] = found.settings[key.name]
        wanted = replace(self._conf, settings=MappingProxyType(settings))
        try:
            self._use(wanted)
        except ConfigurationError as problem:
            log.warning("configuration.not_changed", key=key.name, new=new, why=str(problem))
            return Change(key.name, old, new, str(problem))
        self._conf = wanted
        log.info("configuration.changed", key=key.name, old=old, new=new)
        return Change(key.name, old, new)

    def methods(self, check: Check) -> Mapping[str, Method]:
        """Return the three calls of operators, each of which ``check`` lets in."""

        async def start(call: Call, _: pb.StartReconfigurationRequestProto) -> Any:  # noqa: ANN401
            await check(call)
            try:
                await self.start()
            except ConfigurationError as problem:
                raise RemoteFault(IO_EXCEPTION, str(problem)) from problem
            return pb.StartReconfigurationResponseProto()

        async def status(call: Call, _: pb.GetReconfigurationStatusRequestProto) -> Any:  # noqa: ANN401
            await check(call)
            return self._status()

        async def names(call: Call, _: pb.ListReconfigurablePropertiesRequestProto) -> Any:  # noqa: ANN401
            await check(call)
            known = sorted(key.name for key in self._keys)
            return pb.ListReconfigurablePropertiesResponseProto(name=known)

        return {
            "startReconfiguration": Method(pb.StartReconfigurationRequestProto, start),
            "getReconfigurationStatus": Method(pb.GetReconfigurationStatusRequestProto, status),
            "listReconfigurableProperties": Method(
                pb.ListReconfigurablePropertiesRequestProto, names
            ),
        }

    def _status(self) -> pb.GetReconfigurationStatusResponseProto:
        return pb.GetReconfigurationStatusResponseProto(
            startTime=round(self._began * 1000),
            endTime=round(self._ended * 1000) or None,
            changes=[
                pb.GetReconfigurationStatusConfigChangeProto(
                    name=one.name, oldValue=one.old, newValue=one.new,
                    errorMessage=one.error or None,
                )
                for one in self.changes
            ],
        )  # fmt: skip


def check_is(superuser: str) -> Check:
    """Return the check of a daemon whose only superuser is the user that it runs as."""

    async def check(call: Call) -> None:
        if call.user != superuser:
            raise RemoteFault(
                ACCESS_CONTROL,
                f"{call.method}: user {call.user!r} is not the superuser {superuser!r}",
            )

    return check


def _text(conf: Configuration, key: Key[Any]) -> str:
    found = conf.raw(key.name)
    return key.default if found is None else found
