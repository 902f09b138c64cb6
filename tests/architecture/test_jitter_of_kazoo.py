"""What kazoo draws does not disturb a property that runs next to it (tests/conftest.py)."""

import random
import socket

from kazoo.client import KazooClient

_SECONDS = 60


def test_a_client_that_looks_for_its_server_leaves_the_module_random_alone() -> None:
    """Look again and again for a server that is gone, as after a test that did not close it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_SECONDS)
        client = KazooClient(hosts=f"127.0.0.1:{listener.getsockname()[1]}")
        before = random.getstate()
        client.start_async()
        try:
            for _ in range(3):
                listener.accept()[0].close()
            assert random.getstate() == before
        finally:
            client.stop()
            client.close()
