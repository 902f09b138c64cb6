"""Hang up on a reader that stands still in the middle of an answer."""

import array
import asyncio
import fcntl
import termios
from contextlib import suppress
from typing import Final

import structlog
from prometheus_client import Counter

log = structlog.get_logger()

HANGUPS = Counter("nnha_http_hangups_total", "HTTP connections that this side closed.", ["cause"])
UNREAD = HANGUPS.labels("unread")
_LOOKS: Final = 8


class Reader:
    """The far end of one connection, looked at from now on until that is closed.

    It stands still where bytes wait for it and it takes none of them for ``patience_seconds``.
    How long it takes for all of them is no matter: a slow link must not be cut.  Without this a
    handler that waits for its reader would keep its task, its file and its place among the
    connections for ever.
    """

    def __init__(self, transport: asyncio.Transport, patience_seconds: float) -> None:
        self._transport = transport
        self._every_seconds = patience_seconds / _LOOKS
        self._unread = 0
        # Looks are counted, not seconds: a process that was itself stopped must not blame its
        # peers.
        self._looks_in_vain = 0
        self._look()

    def _look(self) -> None:
        unread = _unread(self._transport)
        if unread is None:
            return
        stands_still = unread > 0 and unread == self._unread
        self._looks_in_vain = self._looks_in_vain + 1 if stands_still else 0
        self._unread = unread
        if self._looks_in_vain >= _LOOKS:
            self._hang_up()
        else:
            asyncio.get_running_loop().call_later(self._every_seconds, self._look)

    def _hang_up(self) -> None:
        self._transport.abort()
        UNREAD.inc()
        peer = self._transport.get_extra_info("peername")
        log.warning(
            "http.hung_up",
            cause="unread",
            peer=peer and f"{peer[0]}:{peer[1]}",
            unread_bytes=self._unread,
            stood_still_seconds=round(self._every_seconds * _LOOKS, 3),
        )


def _unread(transport: asyncio.Transport) -> int | None:
    """Return the bytes in our and the kernel's buffer that the far end has not taken; None if
    closed.

    Ours alone would not distinguish a slow reader from none: the kernel takes more from us only
    when a third of its own, which may hold megabytes, is free.  ``is_closing`` does not mean
    closed: a transport lives on until its last byte has gone.
    """
    # A connection over TLS that has closed has no socket any more.
    socket = transport.get_extra_info("socket")
    number = -1 if socket is None else socket.fileno()
    if number < 0:
        return None
    in_kernel = array.array("i", [0])
    with suppress(OSError):  # a system without this question: our own buffer has to do
        fcntl.ioctl(number, termios.TIOCOUTQ, in_kernel)
    return transport.get_write_buffer_size() + in_kernel[0]
