"""ClientProtocol's calls to the NameNodes of a nameservice, whichever of them is active."""

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from itertools import count
from typing import Final, TypeVar

from google.protobuf.message import Message

from files.errors import FilesError, NotProven, OutcomeUnknown, Refused, Unreachable
from files.retry_rule import Tries, again, failure_of
from ha.conf import topology
from ha.conf.configuration import Configuration
from ha.conf.topology import HostPort
from ha.record import dataclass, field
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed, NoProof, RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.packets import CallKey
from ha.rpc.sasl.initiation import LoginToken
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as hdfs

M = TypeVar("M", bound=Message)

DEFAULTS_SECONDS: Final = 3600.0
"""How long a client keeps the NameNode's defaults, as Hadoop's does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long a call may take, in seconds."""

    connect_seconds: float = 3.0
    """A host that is down answers nothing: the other NameNode is asked soon."""
    attempt_seconds: float = 30.0
    """An active that stands still keeps its sockets: only this finds it."""
    total_seconds: float = 120.0
    """Longer than the session of a dead ZKFC, its fencing and the promotion of another."""

    def __post_init__(self) -> None:
        if not 0 < self.connect_seconds <= self.attempt_seconds <= self.total_seconds:
            raise ValueError("a connection is a part of an attempt, and that one of the whole")


DEFAULT_LIMITS = CallLimits()


@dataclass(slots=True)
class _Place:
    """A NameNode, and the connection to it that all calls share."""

    address: HostPort
    opening: asyncio.Task[RpcConnection] | None = None


@dataclass(slots=True)
class Namenodes:
    """The NameNodes of one nameservice, for one user; it may be used by many tasks of one loop.

    ``user`` is the user that calls are for (by default, that of this process).
    """

    addresses: Sequence[HostPort]
    user: str | None = None
    limits: CallLimits = DEFAULT_LIMITS
    token: LoginToken | None = None
    """By which to log in."""
    current: int = 0
    """The place of the one that is asked first, as it answered last."""
    _places: list[_Place] = field(init=False)
    _closed: bool = False
    _numbers: "count[int]" = field(default_factory=count)
    _client_id: bytes = field(default_factory=lambda: uuid.uuid4().bytes)
    _defaults: tuple[float, hdfs.FsServerDefaultsProto] | None = None
    _data_key: hdfs.DataEncryptionKeyProto | None = None

    def __post_init__(self) -> None:
        self._places = [_Place(address) for address in self.addresses]

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        *,
        nameservice: str | None = None,
        user: str | None = None,
        limits: CallLimits = DEFAULT_LIMITS,
        token: LoginToken | None = None,
    ) -> "Namenodes":
        """Return the NameNodes that the configuration lists.

        Raises:
            ConfigurationError: if it does not say which they are.
        """
        service = nameservice or topology.nameservice_of(configuration)
        known = topology.namenodes(configuration, service)
        return cls([one.rpc for one in known], user=user, limits=limits, token=token)

    async def __aenter__(self) -> "Namenodes":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; calls under way end as if their time were over."""
        self._closed = True
        for opening in [place.opening for place in self._places if place.opening is not None]:
            if not opening.cancel() and not _is_of_no_use(opening):
                await opening.result().close()

    async def call(
        self, method: str, request: Message, response: type[M], *, seconds: float | None = None
    ) -> M:
        """Have the active NameNode carry out a call, and return its answer.

        ``seconds`` are for everything, over all attempts.

        Raises:
            Refused: the NameNode refuses, with one of the kinds in ``files.errors``.
            NotProven: we have no tickets.
            Unreachable: none was active in time; the call was not carried out.
            OutcomeUnknown: an attempt was sent and never answered; it may have been carried out.
        """
        loop, patience = asyncio.get_running_loop(), seconds or self.limits.total_seconds
        until = loop.time() + patience
        number, tries = next(self._numbers), Tries()
        found = dict[HostPort, str]()
        while not self._closed:
            at = self.current
            place = self._places[at]
            key = CallKey(self._client_id, number, tries.moves + tries.waits)
            try:
                connection = await self._connect(place, until)
                left = min(self.limits.attempt_seconds, max(0.0, until - loop.time()))
                try:
                    return await connection.call(
                        method, request, response, deadline_seconds=left, key=key
                    )
                except RpcError:  # a process that stands still may never read another call
                    await connection.close()
                    raise
            except NoProof as problem:  # time brings no tickets
                raise NotProven(f"{method} was not carried out: {problem}") from problem
            except (RpcError, RemoteFault) as problem:
                failure = failure_of(problem)
                if isinstance(failure, Refused):
                    raise failure from problem
                # An attempt that the end of our time cuts off knows less than those before it.
                if loop.time() < until or place.address not in found:
                    found[place.address] = f"{problem}".partition("\n")[0]
            step = again(failure, tries, namenodes=len(self._places), chance=random.random())
            tries = step.tries
            if step.move and self.current == at:  # else another call has moved already
                self.current = (at + 1) % len(self._places)
            if loop.time() + step.seconds >= until:
                break
            await asyncio.sleep(step.seconds)
        seen = "; ".join(f"{one}: {found.get(one, 'was not asked')}" for one in self.addresses)
        raise _without_result(method, tries, patience, seen)

    async def ask(self, response: type[M], *, seconds: float | None = None, **fields: object) -> M:
        """Make the call that ``response`` answers, with these fields of its request.

        Raises as ``call``.
        """
        stem = response.DESCRIPTOR.name.removesuffix("ResponseProto")
        request = getattr(calls, f"{stem}RequestProto")(**fields)
        return await self.call(stem[0].lower() + stem[1:], request, response, seconds=seconds)

    async def defaults(self) -> hdfs.FsServerDefaultsProto:
        """Return the NameNode's defaults; raise as ``call``."""
        now = time.monotonic()
        if self._defaults is None or now >= self._defaults[0] + DEFAULTS_SECONDS:
            found = await self.ask(calls.GetServerDefaultsResponseProto)
            self._defaults = now, found.serverDefaults
        return self._defaults[1]

    async def data_key(
        self, refused: hdfs.DataEncryptionKeyProto | None = None
    ) -> hdfs.DataEncryptionKeyProto | None:
        """Return the kept key, or a new one if it has expired or was ``refused``."""
        if not (await self.defaults()).encryptDataTransfer:
            return None
        key = self._data_key
        if key is None or key == refused or key.expiryDate <= time.time() * 1000:
            found = await self.ask(calls.GetDataEncryptionKeyResponseProto)
            key = found.dataEncryptionKey if found.HasField("dataEncryptionKey") else None
            self._data_key = key
        return key

    async def _connect(self, place: _Place, until: float) -> RpcConnection:
        """Return the connection, opened if there is none; many calls may wait for one."""
        opening = place.opening
        if opening is None or (opening.done() and _is_of_no_use(opening)):
            opening = place.opening = asyncio.create_task(
                RpcConnection.open(
                    place.address.host,
                    place.address.port,
                    protocol=CLIENT_PROTOCOL,
                    user=self.user,
                    deadline_seconds=self.limits.connect_seconds,
                    client_id=self._client_id,
                    token=self.token,
                )
            )
            opening.add_done_callback(_is_of_no_use)
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(opening)
        except TimeoutError as problem:
            raise ConnectFailed(f"no connection to {place.address} in time") from problem
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if opening.cancelled() and task is not None and not task.cancelling():
                raise ConnectFailed("this client was closed") from None
            raise


def _without_result(method: str, tries: Tries, patience: float, found: str) -> FilesError:
    if tries.unanswered:
        return OutcomeUnknown(
            f"{method} was sent, and no answer came within {patience:g} s: it may have been "
            f"carried out ({found}). → Look whether it was before you repeat it."
        )
    return Unreachable(
        f"{method} was not carried out: no NameNode was active within {patience:g} s "
        f"({found}). → nnha status shows why."
    )


def _is_of_no_use(opening: "asyncio.Task[RpcConnection]") -> bool:
    """Return whether there is no connection; its error counts as read, even if no call waits."""
    return opening.cancelled() or opening.exception() is not None or opening.result().closed
