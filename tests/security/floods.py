"""A stranger that opens connections faster than anybody needs, says a few bytes and stays."""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.needs import AS_STRANGER, strangers_python

HALF_HANDSHAKE = b"\x16\x03\x01\x02\x00"
NO_HTTP_PAGE = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"

_FLOOD = """
import collections, socket, sys, time

rate, most, *said = sys.argv[1:]
targets = [(int(port), bytes.fromhex(words)) for port, _, words in
           (one.partition(":") for one in said)]
opened, began, count = collections.deque(), time.monotonic(), 0
while True:
    port, words = targets[count % len(targets)]
    count += 1
    try:
        one = socket.create_connection(("127.0.0.1", port), 1)
        one.sendall(words)
        opened.append(one)
    except OSError:
        pass
    if len(opened) > int(most):
        opened.popleft().close()
    time.sleep(max(0.0, count / float(rate) - (time.monotonic() - began)))
"""


@contextmanager
def flooding(
    targets: Iterable[tuple[int, bytes]], *, a_second: int, most: int = 900
) -> Iterator[None]:
    """Have another user connect to each port in turn and say the words for it.

    ``most``: it keeps as many open, and closes the oldest beyond that.
    """
    python = strangers_python()
    assert python is not None
    said = [f"{port}:{words.hex()}" for port, words in targets]
    command = [python, "-I", "-S", "-c", _FLOOD, str(a_second), str(most), *said]
    with subprocess.Popen(command, **AS_STRANGER) as process:
        try:
            yield
            assert process.poll() is None, "it went on to the end"
        finally:
            process.kill()
