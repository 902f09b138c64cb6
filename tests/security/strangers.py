"""Processes of another user, through which a test attacks; and daemons that write audit lines."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from ha.rpc.java_names import ACCESS_CONTROL
from ha.rpc.packets import PREAMBLE, CallKey, Status, encode_call, encode_context
from ha.rpc.proto import ha_service_pb2 as ha
from tests.ha.rpc.blocking_client import BlockingClient
from tests.namenode_sim.startup.startup_world import KEYS, write_site
from tests.needs import AS_STRANGER, strangers_python

SECONDS = 60.0
KEY = CallKey(bytes(16), 0, 0)

_RELAY = """
import socket, sys, threading
from contextlib import suppress

def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for ends in ((near, far), (far, near)):
        threading.Thread(target=pump, args=ends, daemon=True).start()
"""
"""What goes through it comes from a socket of its user: the relay is the caller."""


@contextmanager
def stranger(port: int) -> Iterator[int]:
    """Yield a port behind which another user's process calls that port of a daemon."""
    python = strangers_python()
    assert python is not None
    command = [python, "-I", "-S", "-u", "-c", _RELAY, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **AS_STRANGER) as process:
        assert process.stdout is not None
        try:
            port = process.stdout.readline()
            assert port, f"the relay ended with {process.wait()}"
            yield int(port)
        finally:
            process.kill()


@dataclass(frozen=True)
class Daemon:
    """A running daemon, and what it has written."""

    process: asyncio.subprocess.Process
    log: Path
    audit: Path

    async def audited(self, count: int) -> list[Mapping[str, Any]]:
        """Return the audit lines, once there are ``count`` of them."""
        async with asyncio.timeout(SECONDS):
            while len(lines := self._lines()) < count:
                await asyncio.sleep(0.02)
        return lines

    def _lines(self) -> list[Mapping[str, Any]]:
        if not self.audit.exists():
            return []
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@asynccontextmanager
async def daemon(folder: Path, command: str, started: str, **site: str) -> AsyncIterator[Daemon]:
    """Run a real process with these keys, and wait for its event ``started``."""
    audit, log = folder / "audit.log", folder / "daemon.log"
    write_site(folder / "conf", {**KEYS, "nnha.audit.file": str(audit), **site})
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ha.cli.main", *command.split(),
            "--conf-dir", str(folder / "conf"), stdout=out, stderr=out,
        )  # fmt: skip
    try:
        async with asyncio.timeout(SECONDS):
            while f'"{started}"' not in log.read_text():
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.02)
        yield Daemon(process, log, audit)
    finally:
        process.kill()
        await process.wait()


async def refusal_of(
    port: int, protocol: str, user: str, method: str, request: Message, context: str = ""
) -> str:
    """Return the text of a refusal; empty where the call is answered."""
    said = PREAMBLE + encode_context(bytes(16), protocol, user, None)
    call = encode_call(KEY, protocol, method, request.SerializePartialToString(), context)
    with BlockingClient(port, said) as client:
        answer = await asyncio.to_thread(client.ask, call)
    if answer[0].status is Status.SUCCESS:
        return ""
    assert answer[0].java_class == ACCESS_CONTROL
    return f"{'FATAL ' if answer[0].status is Status.FATAL else ''}{answer[0].message}"


def standby_request() -> ha.TransitionToStandbyRequestProto:
    source = ha.HAStateChangeRequestInfoProto(reqSource=ha.REQUEST_BY_USER_FORCED)
    return ha.TransitionToStandbyRequestProto(reqInfo=source)
