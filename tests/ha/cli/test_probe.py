"""``nnha probe``: what a container's health check learns, and what it costs."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from click.testing import CliRunner

from ha.cli.main import main
from ha.cli.probe.question import Question, answer, judge, parse
from ha.console.exit_codes import DONE, FAILED, UNHEALTHY, UNREACHABLE, USAGE
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.probes import RoleSeen

ADDRESSES = {
    "8480": Question("127.0.0.1", 8480, "livez"),
    ":8480": Question("127.0.0.1", 8480, "livez"),
    "nn1:50070/readyz": Question("nn1", 50070, "readyz"),
    "http://nn1:50070/": Question("nn1", 50070, "livez"),
    "http://[::1]:50070/active": Question("::1", 50070, "active"),
    "8480/standby": Question("127.0.0.1", 8480, "standby"),
    "https://jn1:8481/readyz": Question("jn1", 8481, "readyz", by_tls=True),
}
WRONG = [
    "",
    "nn1",
    "nn1:",
    "0",
    "65536",
    "1" * 5000,
    "-1",
    "ftp://nn1:1",
    "https://http://nn1:1",
    "1/metrics",
    "\u0663",
]
NO_HTTP = "unknown: the answer is no HTTP; of a port that takes HTTPS alone ask https://HOST:PORT"
ANSWERS = {
    "it is live": ("livez", b'HTTP/1.1 200 OK\r\n\r\n{"alive": true}', DONE, "live"),
    "it is not ready, and says why": (
        *("readyz", b'HTTP/1.1 503 Service Unavailable\r\n\r\n{"ready": false, "reason": "full"}'),
        *(UNHEALTHY, "not ready: full"),
    ),
    "strangers get no reason": ("readyz", b"HTTP/1.1 503 X\r\n\r\n", UNHEALTHY, "not ready"),
    "nor one that is no text": ("readyz", b"HTTP/1.1 503 X\r\n\r\n[1]", UNHEALTHY, "not ready"),
    "a standby is not active": (
        *("active", b'HTTP/1.1 503 X\r\n\r\n{"state": "standby"}', UNHEALTHY),
        "not active: standby",
    ),
    "what stands before a daemon says 503 when it is dead": (
        *("livez", b"HTTP/1.1 503 X\r\n\r\n", UNREACHABLE),
        "unknown: HTTP status 503, which no daemon of nnha gives",
    ),
    "Hadoop's daemons have no such page": (
        *("livez", b"HTTP/1.1 404 Not Found\r\n\r\n", UNREACHABLE),
        "unknown: HTTP status 404, which no daemon of nnha gives",
    ),
    "a port of another protocol": ("livez", b"\0*", UNREACHABLE, NO_HTTP),
    "it hung up": ("livez", b"", UNREACHABLE, NO_HTTP),
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_needs_no_more_than_its_port(address: str) -> None:
    assert parse(address) == ADDRESSES[address]


@pytest.mark.parametrize("address", WRONG)
def test_what_is_no_address_is_wrong_usage(address: str) -> None:
    with pytest.raises(ValueError, match=r"port|scheme|page"):
        parse(address)
    assert CliRunner().invoke(main, ["probe", "--", address]).exit_code == USAGE


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_says_what_the_daemon_is(case: str) -> None:
    page, said, code, text = ANSWERS[case]
    assert judge(page, said) == (code, text)


async def test_a_daemon_is_asked_over_its_own_port() -> None:
    unready: list[str | None] = ["it loads its image: 12 %"]
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, ready=lambda: unready[0], role=lambda: RoleSeen("active")
    )
    port = await endpoint.start("127.0.0.1", 0)

    async def told(page: str) -> tuple[int, str]:
        return await asyncio.to_thread(answer, parse(f"{port}/{page}"), 30.0)

    try:
        assert await told("livez") == (DONE, "live")
        assert await told("readyz") == (UNHEALTHY, "not ready: it loads its image: 12 %")
        unready[0] = None
        assert await told("readyz") == (DONE, "ready")
        assert await told("active") == (DONE, "active")
        assert await told("standby") == (UNHEALTHY, "not standby: active")
    finally:
        await endpoint.stop()


def by_script(*words: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from nnha.commands import main; sys.argv[0] = 'nnha'; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def by_click(*words: str) -> subprocess.CompletedProcess[str]:
    return by_script(*words[:1], "--timeout", "3", *words[1:])


@pytest.fixture
def stopped_server() -> Iterator[int]:
    """Start and stop a listening process: the kernel takes connections, and no answer comes."""
    program = (
        "import socket\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "print(listener.getsockname()[1], flush=True)\n"
        "listener.accept()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGSTOP)
        yield port
        process.kill()


@pytest.mark.parametrize("run", [by_script, by_click])
def test_both_ways_into_the_command_tell_the_same(
    run: Callable[..., subprocess.CompletedProcess[str]], stopped_server: int
) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        refused = run("probe", str(port))
    assert (refused.returncode, refused.stdout) == (
        FAILED, f"down: nobody listens on 127.0.0.1:{port}\n",
    )  # fmt: skip
    silent = run("probe", str(stopped_server))
    assert (silent.returncode, silent.stdout) == (UNREACHABLE, "unknown: no answer within 3 s\n")
    assert run("probe", "nowhere").returncode == USAGE


def test_it_loads_little() -> None:
    """Stay cheap: a host runs one every few seconds for each of its containers."""
    program = (
        "import sys; from nnha.commands import main; sys.argv[:] = ['nnha', 'probe', '1']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'click', 'email', 'http', 'inspect', 'json', 'ssl', 'structlog'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
