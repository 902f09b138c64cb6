"""Which connections share what an address, a network or a user may have."""

import os
import socket

import pytest

from ha.daemon.door.origin import Origin, Share, origin_of, origin_of_ends, origin_of_socket
from ha.security.caller import Caller, local_caller, unproven

LOCAL = local_caller(1000, 0, "127.0.0.1:5")
ORIGINS: dict[str, tuple[str, Caller | None, Origin]] = {
    "another machine": ("10.0.0.1", None, Origin("10.0.0.1", Share.OF_ADDRESS)),
    "a user of this one": ("127.0.0.1", LOCAL, Origin("uid 1000", Share.OF_USER)),
    "root": (
        "127.0.0.1", local_caller(0, 7, ""), Origin("uid 0", Share.OF_USER, trusted=True),
    ),
    "this one, nobody asks": ("127.0.0.1", None, Origin("127.0.0.0", Share.UNLIMITED)),
    "any address of this one": ("127.9.9.9", None, Origin("127.0.0.0", Share.UNLIMITED)),
    "this one, not told": ("::1", unproven("::1"), Origin("::", Share.UNLIMITED)),
    "a mapped address": ("::ffff:10.0.0.1", None, Origin("10.0.0.1", Share.OF_ADDRESS)),
    "a site has as many addresses as it likes": (
        "2001:db8::7", None, Origin("2001:db8::", Share.OF_ADDRESS),
    ),
    "within one link": ("fe80::1%eth0", None, Origin("fe80::", Share.OF_ADDRESS)),
    "no address": ("", None, Origin("", Share.OF_ADDRESS)),
}  # fmt: skip


@pytest.mark.parametrize("case", ORIGINS)
def test_the_origin_of_a_connection(case: str) -> None:
    host, caller, expected = ORIGINS[case]
    assert origin_of(host, caller) == expected


def test_the_kernel_is_asked_on_this_machine() -> None:
    own = Origin(f"uid {os.geteuid()}", Share.OF_USER, trusted=True)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as there,
        listener.accept()[0] as here,
    ):
        assert origin_of_socket(here) == own
        there.close()
        assert origin_of_socket(here).share is Share.UNLIMITED, "its end has no owner any more"


def test_what_has_no_names_has_an_origin() -> None:
    assert origin_of_ends(None, None) == Origin("", Share.OF_ADDRESS)
