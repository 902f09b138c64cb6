"""Under which names nnha web answers."""

import pytest

from ha.daemon.http.hosts import allowed_hosts, may_be_asked

ASKED = {
    None: False,
    "": False,
    "localhost": True,
    "LOCALHOST:8122": True,
    "web.example": True,
    "box": True,
    "box.:80": True,
    "proxy.example": True,
    "rooted.example.": True,
    "rooted.example": False,
    "127.0.0.1": True,
    "127.0.0.1:8122": True,
    "192.0.2.7": True,
    "[::1]": True,
    "[fe80::1]:8122": True,
    "[evil.example]": False,
    "evil.example": False,
    "127.0.0.1.evil.example": False,
}


@pytest.mark.parametrize("host", ASKED)
def test_addresses_and_our_own_names_may_be_asked(host: str | None) -> None:
    allowed = allowed_hosts("Web.Example", "box", ("proxy.example", "rooted.example."))
    assert may_be_asked(host, allowed) is ASKED[host]


def test_a_machine_without_a_name_is_not_asked_by_none() -> None:
    assert not may_be_asked("", allowed_hosts("127.0.0.1", "", ()))
