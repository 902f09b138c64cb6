"""Whose socket is at the other end, asked of this machine's own kernel."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ha.security import peer_uid
from tests.needs import AS_STRANGER, OTHER_USER, STRANGER, strangers_python

Ask = Callable[[peer_uid.End, peer_uid.End], int | None]
WAYS: dict[str, Ask] = {"netlink": peer_uid.asked_of_netlink, "proc": peer_uid.asked_of_proc}
FAMILIES = {
    "IPv4": (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    "IPv6": (socket.AF_INET6, "::1", "::1"),
    "IPv4 by a socket of IPv6, as Java's": (socket.AF_INET6, "127.0.0.1", "::ffff:127.0.0.1"),
}


@contextmanager
def connected(family: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    kind, listens, target = FAMILIES[family]
    of_listener = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with (
        socket.create_server((listens, 0), family=of_listener) as listener,
        socket.socket(kind) as client,
    ):
        client.connect((target, listener.getsockname()[1]))
        accepted, _ = listener.accept()
        with accepted:
            yield client, accepted


def ends(accepted: socket.socket) -> tuple[peer_uid.End, peer_uid.End]:
    peer, own = peer_uid.end_of(accepted.getpeername()), peer_uid.end_of(accepted.getsockname())
    assert peer is not None
    assert own is not None
    return peer, own


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS)
def test_our_own_socket_is_ours(way: str, family: str) -> None:
    with connected(family) as (_, accepted):
        assert WAYS[way](*ends(accepted)) == os.geteuid()
        assert peer_uid.still_open(accepted)


@pytest.mark.parametrize("way", WAYS)
def test_a_socket_that_was_closed_is_nobodys_and_not_roots(way: str) -> None:
    with connected("IPv4") as (client, accepted):
        peer, own = ends(accepted)
        client.close()
        accepted.recv(1)  # its end has come
        assert WAYS[way](peer, own) is None


@pytest.mark.parametrize("way", WAYS)
def test_half_a_close_leaves_it_its_owners(way: str) -> None:
    with connected("IPv4") as (client, accepted):
        client.shutdown(socket.SHUT_WR)
        accepted.recv(1)
        assert WAYS[way](*ends(accepted)) == os.geteuid()
        assert peer_uid.still_open(accepted)


@pytest.mark.parametrize("way", WAYS)
def test_who_listens_there_is_not_who_calls(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = peer_uid.end_of(listener.getsockname())
        assert there is not None
        assert WAYS[way](there, peer_uid.End("127.0.0.1", 9)) is None


def test_a_connection_that_was_reset_is_not_open() -> None:
    with connected("IPv4") as (client, accepted):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert not peer_uid.still_open(accepted)
    assert not peer_uid.still_open(None)


@OTHER_USER.mark
@pytest.mark.parametrize("way", WAYS)
def test_another_users_socket_is_that_users(way: str) -> None:
    program = (
        "import socket, sys\n"
        "peer = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "peer.recv(1)\n"
    )
    python = strangers_python()
    assert python is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [python, "-I", "-S", "-c", program, str(listener.getsockname()[1])]
        with subprocess.Popen(command, **AS_STRANGER) as stranger:
            accepted, _ = listener.accept()
            with accepted:
                assert WAYS[way](*ends(accepted)) == STRANGER
            stranger.wait()


def test_the_kernel_tells_here() -> None:
    assert peer_uid.is_told()


def test_what_is_no_end_of_tcp() -> None:
    assert peer_uid.end_of(None) is None
    assert peer_uid.end_of("/run/socket") is None
    assert peer_uid.end_of(("::ffff:127.0.0.1", 5, 0, 0)) == peer_uid.End("127.0.0.1", 5)
    assert peer_uid.is_here(peer_uid.End("127.0.0.9", 1), peer_uid.End("127.0.0.1", 2))
    assert peer_uid.is_here(peer_uid.End("10.0.0.5", 1), peer_uid.End("10.0.0.5", 2))
    assert not peer_uid.is_here(peer_uid.End("10.0.0.6", 1), peer_uid.End("10.0.0.5", 2))
