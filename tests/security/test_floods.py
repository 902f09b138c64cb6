"""A stranger who writes as much as it can fills no log of a real daemon, and hides no other one."""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from deploy.local.cluster.ports import HOST
from ha.daemon.log_limit import LINES_OF_A_CALLER
from ha.rpc.java_names import CLIENT_PROTOCOL, HA_SERVICE_PROTOCOL
from ha.rpc.packets import PREAMBLE, encode_call, encode_context
from tests.needs import OTHER_USER, STRANGER, strangers_python
from tests.security.strangers import KEY, SECONDS, standby_request
from tests.security.test_strangers import namenode

pytestmark = OTHER_USER.mark

FLOOD_SECONDS = 0.5
MOST_BYTES_A_MINUTE = 512 * 1024
"""Of a daemon's log, whatever one stranger does.  It was 130 MB a second."""
OTHER = STRANGER + 1

_FLOOD = """
import socket, sys, time
port, seconds, least = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
pieces, end, count = sys.stdin.buffer.read().split(b"<>"), time.monotonic() + seconds, 0
while count < least or time.monotonic() < end:
    peer = socket.socket()
    try:
        peer.bind((f"127.{count % 200 + 1}.{count // 200 % 200}.1", 0))
        peer.connect(("127.0.0.1", port))
        peer.sendall(pieces[count % len(pieces)])
        peer.settimeout(5)
        peer.recv(65536)
    except OSError:
        pass
    peer.close()
    count += 1
print(count)
"""


def greeting(user: str, protocol: str = HA_SERVICE_PROTOCOL) -> bytes:
    return PREAMBLE + encode_context(bytes(16), protocol, user, None)


def hang_up(own: str) -> bytes:
    """Return what a server hangs up for after it has accepted the caller's name."""
    return greeting(own, CLIENT_PROTOCOL) + b"\xff\xff\xff\xff"


FLOODS: Mapping[str, Callable[[], list[bytes]]] = {
    "users of 60,000 letters": lambda: [greeting("A" * 60_000)],
    "users of control characters": lambda: [greeting("\x01\u202e" * 60)],
    "invented faces": lambda: [greeting("root", f"x{number}.y{number}") for number in range(200)],
    "frames of no length": lambda: [hang_up(str(STRANGER))],
    "calls of nothing": lambda: [
        greeting(str(STRANGER)) + encode_call(KEY, "x" * 9000, "y" * 9000, b"") + b"\xff" * 4
    ],
    "no Hadoop RPC": lambda: [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\0\1x", b"hrpc\7\0\0"],
}  # fmt: skip


def flood(
    port: int,
    pieces: list[bytes],
    uid: int = STRANGER,
    seconds: float = FLOOD_SECONDS,
    least: int = 2 * LINES_OF_A_CALLER + 1,
) -> int:
    """Send each of some greetings, ``least`` at least, as another user; return how often."""
    python = strangers_python()
    assert python is not None
    done = subprocess.run(
        [python, "-I", "-S", "-c", _FLOOD, str(port), str(seconds), str(least)],
        input=b"<>".join(pieces), capture_output=True, timeout=SECONDS, check=True,
        user=uid, group=uid, extra_groups=[],
    )  # fmt: skip
    return int(done.stdout)


def audits(log: Path) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return [line for line in lines if line["event"] == "audit"]


async def dropped(http: int) -> float:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{HOST}:{http}/metrics") as got,
    ):
        text = await got.text()
    shown = ("nnha_log_lines_dropped_total{", "nnha_audit_refusals_not_written_total ")
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(shown))


async def test_no_flood_fills_the_log_and_no_caller_hides_another(tmp_path: Path) -> None:
    async with namenode(tmp_path) as (process, rpc, http):
        before, began = process.log.stat().st_size, time.monotonic()
        for name, pieces in FLOODS.items():
            uncounted = await dropped(http)
            sent = await asyncio.to_thread(flood, rpc, pieces())
            assert await dropped(http) - uncounted > sent / 2, name
        minutes = 1 + (time.monotonic() - began) // 60
        assert process.log.stat().st_size - before < MOST_BYTES_A_MINUTE * minutes
        request = standby_request().SerializeToString()
        call = encode_call(KEY, HA_SERVICE_PROTOCOL, "transitionToStandby", request)
        for uid in (STRANGER, OTHER):
            for user in ("root", str(uid)):
                await asyncio.to_thread(flood, rpc, [greeting(user) + call], uid, 0.0, 1)
        said = {(one["uid"], one["action"]) for one in audits(process.log)}
        assert {
            (STRANGER, "transitionToStandby"), (OTHER, "transitionToStandby"), (OTHER, "connect"),
        } <= said  # fmt: skip
        longest = max(map(len, process.log.read_text().splitlines()))
        assert longest < 16_000
        assert process.process.returncode is None
