"""The gRPC port of a JournalNode with certificates.

gRPC takes either TLS or plain connections on an address, and none that another listener has
accepted.  While a cluster changes to certificates (mode ``permissive``), a relay therefore accepts
both on one port, and forwards the bytes to one of two Unix sockets of the gRPC server.  Batches use
write lanes, so the relay forwards few bytes.
"""

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import grpc
import structlog

from ha.daemon.door.door import Door
from ha.daemon.door.origin import origin_of_ends
from ha.daemon.door.places import Standing
from ha.daemon.listening import begin_serving
from ha.security.access_control import AccessControl
from ha.security.first_byte import TLS_FIRST_BYTE
from ha.security.tls_files import Material, TlsFiles
from journal.node.faces.grpc_watch import CONNECTIONS

log = structlog.get_logger()

FIRST_BYTE_SECONDS: Final = 10.0
_PIECE_BYTES: Final = 64 * 1024


def server_credentials(tls: TlsFiles) -> Any:  # noqa: ANN401 - grpc has no types
    """Make credentials that follow changes of the files; clients need a certificate.

    gRPC asks at each new connection, and gets a new configuration only if the files have changed:
    to replace it while another thread begins a handshake is a use after free (grpcio 1.85), so
    that any client could crash the process by connecting.
    """
    given: Material | None = None

    def configuration() -> Any:  # noqa: ANN401
        nonlocal given
        now = tls.material
        if now is given:
            return None
        given = now
        pair = (now.pair.key, now.pair.certificate)
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=now.authorities)

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=True
    )


class GrpcDoor:
    """A relay from one port, for TLS and plain connections, to a gRPC server not yet started."""

    def __init__(self, server: Any, tls: TlsFiles, access: AccessControl) -> None:  # noqa: ANN401
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="nnha-grpc-"))
        self._secure, self._plain = self._folder / "tls", self._folder / "plain"
        server.add_secure_port(f"unix:{self._secure}", server_credentials(tls))
        server.add_insecure_port(f"unix:{self._plain}")
        self._listener: asyncio.Server | None = None
        self._relays: Door[asyncio.Task[None]] = Door("grpc", lambda task, _: task.cancel())

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port; raises OSError."""
        listener = await asyncio.start_server(self._relay, host, port, start_serving=False)
        await begin_serving(listener)
        self._listener = listener
        return int(listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the listener and all relayed connections, and remove the sockets' folder."""
        if self._listener is not None:
            self._listener.close()
        relays = tuple(self._relays)
        for task in relays:
            task.cancel()
        await asyncio.gather(*relays, return_exceptions=True)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        told = writer.get_extra_info
        origin = origin_of_ends(told("peername"), told("sockname"))
        if not self._relays.take(task, CONNECTIONS.seat(origin, Standing.UNPROVEN)):
            writer.close()
            return
        try:
            async with asyncio.timeout(FIRST_BYTE_SECONDS):
                first = await reader.read(_PIECE_BYTES)
            secure = first[:1] == bytes([TLS_FIRST_BYTE])
            if first and (secure or self._may_be_let_in(writer)):
                await self._join(first, reader, writer, self._secure if secure else self._plain)
        except (OSError, TimeoutError) as failure:
            peer = (writer.get_extra_info("peername") or ("",))[0]
            because = str(failure) or "it said nothing"
            log.info("journal.grpc_relay_ended", peer=peer, because=because)
        except asyncio.CancelledError:
            writer.transport.abort()  # a peer that reads nothing would keep close() waiting
        finally:
            self._relays.leave(task)
            writer.close()

    def _may_be_let_in(self, writer: asyncio.StreamWriter) -> bool:
        """Return whether a plain connection may be relayed; the gRPC server takes it as unproven.

        The server sees a Unix socket, not the peer.  A local user, whose uid the kernel knows here,
        must not get the rights of an unproven caller there.
        """
        told = writer.get_extra_info
        caller = self._access.caller(told("peername"), told("sockname"), told("socket"))
        if caller.trusted or not (caller.proven or caller.provable):
            return True
        log.warning(
            "journal.grpc_refused", uid=caller.uid, peer=caller.host, because="it is a client's"
        )
        return False

    async def _join(
        self,
        first: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        path: Path,
    ) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(str(path))
        try:
            inner_writer.write(first)
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, inner_writer), name="gRPC relay, in")
                both.create_task(_pump(inner_reader, writer), name="gRPC relay, out")
        finally:
            inner_writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_PIECE_BYTES):
            sink.write(data)
            await sink.drain()
    sink.close()
