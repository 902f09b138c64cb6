"""ReconfigurationProtocol: the files are read again, and the keys that can change live do.

See docs/reference/rpc.md#reconfigurationprotocol.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
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
        self._conf, self._keys, self._use, self._clock = conf, keys, use, clock
        self._status = pb.GetReconfigurationStatusResponseProto(startTime=0, endTime=0)

    def methods(self, check: Check) -> Mapping[str, Method]:
        """Return the three calls of operators, each of which ``check`` lets in."""

        async def start(call: Call, _: object) -> pb.StartReconfigurationResponseProto:
            await check(call)
            try:
                await self._start()
            except ConfigurationError as problem:
                raise RemoteFault(IO_EXCEPTION, str(problem)) from problem
            return pb.StartReconfigurationResponseProto()

        async def status(call: Call, _: object) -> pb.GetReconfigurationStatusResponseProto:
            await check(call)
            return self._status

        async def names(call: Call, _: object) -> pb.ListReconfigurablePropertiesResponseProto:
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

    async def _start(self) -> None:
        """Read the files and take over what has changed in them, key by key.

        A key that cannot be used keeps its value, and is tried again the next time.  Raises
        ConfigurationError if the files cannot be read; nothing has changed then.
        """
        assert self._conf.again is not None, "a daemon's configuration is from files"
        if not self._status.HasField("endTime"):
            raise RemoteFault(IO_EXCEPTION, "Another reconfiguration task is running.")
        began = round(self._clock() * 1000)
        self._status = status = pb.GetReconfigurationStatusResponseProto(startTime=began)
        try:
            found = await asyncio.to_thread(self._conf.again)
            for key in self._keys:
                old, new = _text(self._conf, key), _text(found, key)
                if old != new:
                    error = self._change(key.name, found)
                    log.info("configuration.changed", key=key.name, old=old, new=new, error=error)
                    status.changes.add(
                        name=key.name, oldValue=old, newValue=new, errorMessage=error
                    )
        finally:
            status.endTime = round(self._clock() * 1000)

    def _change(self, name: str, found: Configuration) -> str | None:
        """Take a key over from ``found``; return why not, or None."""
        settings = {key: one for key, one in self._conf.settings.items() if key != name}
        if name in found.settings:
            settings[name] = found.settings[name]
        wanted = replace(self._conf, settings=MappingProxyType(settings))
        try:
            self._use(wanted)
        except ConfigurationError as problem:
            return str(problem)
        self._conf = wanted
        return None


def check_is(superuser: str) -> Check:
    """Return the check of a daemon whose only superuser is the user that it runs as."""

    async def check(call: Call) -> None:
        if call.user != superuser:
            why = f"{call.method}: user {call.user!r} is not the superuser {superuser!r}"
            raise RemoteFault(ACCESS_CONTROL, why)

    return check


def _text(conf: Configuration, key: Key[Any]) -> str:
    found = conf.raw(key.name)
    return key.default if found is None else found
