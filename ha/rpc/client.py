"""A Hadoop RPC client: one connection, many calls at once, a deadline on each."""

import asyncio
import ssl
import uuid
from collections.abc import Awaitable
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from ha.conf.own_user import own_user
from ha.conf.topology import HostPort
from ha.names import waited_for
from ha.rpc import errors, java_names, packets
from ha.rpc.packets import CallAnswer, CallKey
from ha.rpc.sasl.initiation import LoginToken, prove, prove_by_token
from ha.rpc.wire import Wire
from ha.security.caller import Role
from ha.security.kerberos.own import NoTickets, own_kerberos
from ha.security.own_tls import context_for, falls_back
from ha.security.sasl.mechanism import SaslFailure

M = TypeVar("M", bound=Message)

CLIENT_ID = uuid.uuid4().bytes
"""This process to every server; Java has one per client, too."""


class Connection(Protocol):
    """What a client needs of a connection."""

    async def call(
        self,
        method: str,
        request: Message,
        response: type[M],
        *,
        deadline_seconds: float,
        context: str = "",
    ) -> M:
        """Call as ``RpcConnection.call`` does."""

    async def wait_closed(self) -> Exception:
        """Wait until the connection is gone, and say why."""

    async def close(self) -> None:
        """Hang up."""


class Connect(Protocol):
    """Opens a connection; see ``RpcConnection.open``."""

    def __call__(
        self,
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
    ) -> Awaitable[Connection]:
        """See the class."""


class RpcConnection:
    """One connection to one server, for one protocol.

    It does not reconnect and does not try again: a caller that does must know whether the call may
    be made twice.  After any ``ConnectionLost`` or ``MalformedFrame`` it is of no more use.
    """

    def __init__(self, protocol: str, wire: Wire) -> None:
        self._protocol = protocol
        self._wire = wire
        self._next_call_id = 0

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
        client_id: bytes = CLIENT_ID,
        token: LoginToken | None = None,
    ) -> "RpcConnection":
        """Connect and say who calls (by default, the user of this process, or a token's).

        Raises:
            ConnectFailed: if there is no connection within the deadline; NoProof if a person has no
                tickets.
            RemoteFault: if the server does not take the token.
        """
        try:
            async with asyncio.timeout(deadline_seconds):
                role = _SERVERS.get(protocol)
                wire = await _connect(client_id, host, port, role)
                if token is not None:
                    user = await prove_by_token(wire, token)
                elif (own := own_kerberos()) is not None:
                    user = await prove(wire, own, role, host, user)
        except TimeoutError as failure:
            why = waited_for(failure)
            raise errors.ConnectFailed(
                f"no connection to {host}:{port} within {deadline_seconds} s{why and f': {why}'}"
            ) from (None if why else failure)  # only the peer's own silence counts as that
        except OSError as failure:
            why = str(failure) or "it hung up"
            raise errors.ConnectFailed(f"no connection to {host}:{port}: {why}") from failure
        except NoTickets as failure:
            raise errors.NoProof(f"{host}:{port}: {failure}") from failure
        except (SaslFailure, errors.RpcError) as failure:
            raise errors.ConnectFailed(f"{host}:{port}: {failure}") from failure
        except (ValueError, OverflowError) as failure:
            # A port beyond 65535.  Addresses come from ZooKeeper, too: an impossible one must count
            # as one where nothing listens.
            raise errors.ConnectFailed(f"{host!r}:{port} is no address: {failure}") from failure
        opening = b"" if wire.negotiated else packets.PREAMBLE
        context = packets.encode_context(client_id, protocol, user or own_user(), None)
        wire.send(opening + context)
        return cls(protocol, wire)

    async def call(
        self,
        method: str,
        request: Message,
        response: type[M],
        *,
        deadline_seconds: float,
        context: str = "",
        key: CallKey | None = None,
    ) -> M:
        """Call a method and wait for its answer; ``context`` says why, for the server's records.

        ``key`` is that of a call that was made before, perhaps on another connection: a server that
        has carried it out answers with the result of then.  The caller numbers all or none.

        Raises:
            RemoteFault: the server answered with an error.
            DeadlineExceeded: no answer in time; the call may have been carried out.
            ConnectionLost: the connection is gone; the call may have been carried out.
            MalformedFrame: the server's bytes made no sense.
        """
        key = key or self._next_key()
        data = request.SerializeToString()
        frame = packets.encode_call(key, self._protocol, method, data, context)
        answer = await self._wire.exchange(key.call_id, frame, method, deadline_seconds)
        return self.finish(answer, response)

    def begin(self, method: str, request: Message) -> "asyncio.Future[CallAnswer]":
        """Send a call now, and leave the waiting to the caller; for ``finish`` to make sense of.

        It knows no deadline and no bound on calls under way: for who keeps a few of them under way
        and has a deadline of its own.  Each step of the event loop that this leaves out is time in
        which a commit waits.

        Raises:
            ConnectionLost: the connection is gone; nothing was sent.
        """
        key = self._next_key()
        frame = packets.encode_call(key, self._protocol, method, request.SerializeToString())
        return self._wire.begin(key.call_id, frame, method)

    def _next_key(self) -> CallKey:
        call_id = self._next_call_id
        self._next_call_id = (call_id + 1) & 0x7FFFFFFF
        return CallKey(self._wire.client_id, call_id, 0)

    @staticmethod
    def finish(answer: CallAnswer, response: type[M]) -> M:
        """Return the response of a call that was begun.

        Raises:
            RemoteFault: the server answered with an error.
            MalformedFrame: the server's bytes made no sense.
        """
        if answer.status is not packets.Status.SUCCESS:
            raise errors.RemoteFault(
                answer.java_class, answer.message, fatal=answer.status is packets.Status.FATAL
            )
        return packets.parse(response, answer.body)

    async def wait_closed(self) -> Exception:
        """Wait until the connection is gone, and say why.

        Returns the moment that the peer's end closes (EOF or reset), which on one host is a
        millisecond or two after its death.  A frozen peer keeps its sockets: only a call's
        deadline finds it.
        """
        return await asyncio.shield(self._wire.gone)

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""
        return self._wire.gone.done()

    async def close(self) -> None:
        """Hang up; pending calls end in ConnectionLost."""
        self._wire.drop(errors.ConnectionLost("closed by this side"))


async def call_once(
    address: HostPort,
    protocol: str,
    method: str,
    request: Message,
    response: type[M],
    *,
    deadline_seconds: float,
    connect: Connect = RpcConnection.open,
) -> M:
    """Call a method over a connection of its own; raise as ``open`` and ``call`` do."""
    connection = await connect(
        address.host, address.port, protocol=protocol, deadline_seconds=deadline_seconds
    )
    try:
        return await connection.call(method, request, response, deadline_seconds=deadline_seconds)
    finally:
        await connection.close()


_SERVERS: Final = {
    java_names.CLIENT_PROTOCOL: Role.NAMENODE,
    java_names.REFRESH_USER_MAPPINGS: Role.NAMENODE,
    java_names.REFRESH_AUTHORIZATION_POLICY: Role.NAMENODE,
    java_names.HA_SERVICE_PROTOCOL: Role.NAMENODE,
    java_names.NAMENODE_PROTOCOL: Role.NAMENODE,
    java_names.DATANODE_PROTOCOL: Role.NAMENODE,
    java_names.DATANODE_LIFELINE_PROTOCOL: Role.NAMENODE,
    java_names.ZKFC_PROTOCOL: Role.ZKFC,
    java_names.INTER_DATANODE_PROTOCOL: Role.DATANODE,
    java_names.CLIENT_DATANODE_PROTOCOL: Role.DATANODE,
    java_names.JOURNAL_WITNESS: Role.NAMENODE,
    "nnha.journal.JournalNode": Role.JOURNALNODE,
    "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol": Role.JOURNALNODE,
    "org.apache.hadoop.hdfs.qjournal.protocol.InterQJournalProtocol": Role.JOURNALNODE,
}
"""Whose certificate a server must have; a protocol that is not here may be any daemon's."""


async def _connect(client_id: bytes, host: str, port: int, role: Role | None) -> Wire:
    """Connect, over TLS where this process has certificates and no tickets."""
    proven = own_kerberos() is not None
    loop, secured = asyncio.get_running_loop(), None if proven else context_for(role)
    try:
        if secured is not None:
            return await _wire(loop, client_id, host, port, secured)
    except OSError as failure:
        if not falls_back(failure):
            raise
    return await _wire(loop, client_id, host, port, None)


async def _wire(
    loop: asyncio.AbstractEventLoop,
    client_id: bytes,
    host: str,
    port: int,
    secured: ssl.SSLContext | None,
) -> Wire:
    wire = Wire(client_id)
    await loop.create_connection(lambda: wire, host, port, ssl=secured)
    return wire
