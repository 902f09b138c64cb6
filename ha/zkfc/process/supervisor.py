"""A parent that starts a killed controller again at once, in the session that it had.

One that stood still gave its session up; it is started again in a new one.

Without it the lock of a controller that was killed lasts until the session expires; only then a
controller that was started again by somebody takes it.  The parent has loaded all code and done
nothing else, so that its children need no 0.4 s to start.
"""

import contextlib
import ctypes
import gc
import mmap
import os
import select
import signal
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import structlog
from prometheus_client import Counter

from ha.elector.zookeeper.session_ticket import SessionTicket, decode_ticket, encode_ticket
from ha.zkfc.guard.guard import STOOD_STILL

log = structlog.get_logger()

_restarts = Counter(
    "nnha_zkfc_restarts", "Controllers that the supervisor has started again, by reason", ["why"]
)
"""Counted in the parent; each child is forked with it."""

QUICK_SECONDS: Final = 1.0
"""A controller that lived no longer than this is started again with a pause."""
PAUSES: Final = (0.0, 0.0, 0.2, 1.0, 5.0)
"""Before the first restart, the second, and so on, in seconds; the last one is the longest."""

LAST_WORDS_SECONDS: Final = 1.0
"""How long a controller that a watchdog ends may take to write where it hangs."""

_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SLOT_BYTES: Final = 1024
_HEAD: Final = struct.Struct("<II")
_PR_SET_PDEATHSIG: Final = 1


class TicketSlot:
    """Memory that a controller and its parent share; it survives the controller."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT_BYTES)

    def put(self, ticket: SessionTicket | None) -> None:
        """Keep this one, or none."""
        data = b"" if ticket is None else encode_ticket(ticket)
        # The checksum comes with the data: a controller may die between any two bytes.
        self._memory[: _HEAD.size + len(data)] = _HEAD.pack(len(data), zlib.crc32(data)) + data

    def take(self) -> SessionTicket | None:
        """Return the last one that was kept whole."""
        length, checksum = _HEAD.unpack_from(self._memory)
        data = self._memory[_HEAD.size : _HEAD.size + min(length, _SLOT_BYTES)]
        return decode_ticket(data) if data and zlib.crc32(data) == checksum else None


Serve = Callable[[SessionTicket | None, TicketSlot], int]
"""A controller's life: the ticket of the one before it, where to keep its own, its exit code."""


def supervise(serve: Serve) -> int:
    """Run ``serve`` in a child until it ends by itself; return its exit code.

    One that its guard has ended because it stood still is started again, too.

    It gets the ticket of the controller before it, if that one was killed, and where to keep its
    own.  SIGTERM, SIGINT and SIGHUP are forwarded; one that comes while there is no controller to
    receive it stops us, and that is 0.  When this process dies, the child is killed.  SIGABRT, by
    which systemd's watchdog ends us, is passed on first: the stack that shows what hangs is the
    child's.
    """
    slot = TicketSlot()
    ticket: SessionTicket | None = None
    quick_deaths = 0
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the children
    with _forwarding() as charge:
        while True:
            began = time.monotonic()
            if not _start(serve, ticket, slot, charge):
                return _stop_code()
            status = charge.wait()
            charge.pid = 0
            stood_still = os.WIFEXITED(status) and os.WEXITSTATUS(status) == STOOD_STILL
            if os.WIFEXITED(status) and not stood_still:
                return os.WEXITSTATUS(status)
            if charge.stopping:
                return STOOD_STILL if stood_still else _stop_code(os.WTERMSIG(status))
            quick_deaths = quick_deaths + 1 if time.monotonic() - began < QUICK_SECONDS else 0
            pause = PAUSES[min(quick_deaths, len(PAUSES) - 1)]
            # One that stood still has given its lock up; no child may come back with that session.
            ticket = None if stood_still else slot.take()
            _restarts.labels("stood_still" if stood_still else "killed").inc()
            log.warning(
                "zkfc.killed",
                by_signal=0 if stood_still else os.WTERMSIG(status),
                stood_still=stood_still,
                session=repr(ticket),
                again_in_seconds=pause,
            )
            if charge.sleep(pause):
                return _stop_code()


def _stop_code(by_signal: int = signal.SIGTERM) -> int:
    """Return the exit code of a stop without a controller, or of one that a signal has ended.

    A child which has no handlers yet dies of what is forwarded to it: it was stopped as wished. One
    that was killed while it stopped has not tidied up, and that is reported as a shell would.
    """
    log.info("zkfc.stopped_without_controller", by_signal=by_signal)
    return 0 if by_signal in _FORWARDED else 128 + by_signal


class _Child:
    """The child that signals are forwarded to."""

    def __init__(self, heard: int) -> None:
        """Keep ``heard``, a descriptor that every signal writes to."""
        self.pid = 0
        self.stopping = False
        self._heard = heard

    def forward(self, number: int, _frame: object) -> None:
        """Pass a signal on; between two children, remember it."""
        self.stopping = True
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def abort(self, number: int, _frame: object) -> None:
        """Let the child write where it hangs, and die of the same signal."""
        if self.pid:
            with contextlib.suppress(OSError):
                child = os.pidfd_open(self.pid)
                _signal_main_thread(self.pid, number)
                os.kill(self.pid, signal.SIGCONT)  # one that is stopped would never hear it
                select.select([child], [], [], LAST_WORDS_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def wait(self) -> int:
        """Wait for its end; the exit status.

        The bad schedule: a signal comes just before waitpid, and Python would run its handler only
        after it, when the child has ended by itself.
        """
        child = os.pidfd_open(self.pid)
        try:
            while child not in (ready := select.select([child, self._heard], [], [])[0]):
                if self._heard in ready:
                    os.read(self._heard, _SLOT_BYTES)
            return os.waitpid(self.pid, 0)[1]
        finally:
            os.close(child)

    def sleep(self, seconds: float) -> bool:
        """Wait; return True when it was asked to stop in the meantime."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
        return self.stopping


def _signal_main_thread(pid: int, number: int) -> None:
    """Signal the main thread: the kernel picks any thread where the first one is stopped."""
    library = ctypes.CDLL(None)
    if hasattr(library, "tgkill"):
        library.tgkill(pid, pid, number)
    else:
        os.kill(pid, number)


def _forwarded_signals() -> tuple[signal.Signals, ...]:
    """Return the signals to forward, without those that our starter ignores: nohup, SIGHUP."""
    return tuple(one for one in _FORWARDED if signal.getsignal(one) is not signal.SIG_IGN)


@contextmanager
def _forwarding() -> Iterator[_Child]:
    heard, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    charge = _Child(heard)
    wakened = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    before = {number: signal.signal(number, charge.forward) for number in _forwarded_signals()}
    before[signal.SIGABRT] = signal.signal(signal.SIGABRT, charge.abort)
    try:
        yield charge
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakened)
        os.close(heard)
        os.close(told)


def _start(
    serve: Serve,
    ticket: SessionTicket | None,
    slot: TicketSlot,
    charge: _Child,
) -> bool:
    """Start the next child; return False if we were asked to stop before there was one.

    Signals wait until we know the process to forward them to and the child has no handler of ours
    any more: either would lose one, and the controller would never stop.
    """
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        if charge.stopping:
            return False
        pid = os.fork()
        if pid == 0:
            _be_child(serve, ticket, slot, parent)
        charge.pid = pid
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    return True


def _be_child(
    serve: Serve,
    ticket: SessionTicket | None,
    slot: TicketSlot,
    parent: int,
) -> NoReturn:
    code = 1
    try:
        for number in (*_forwarded_signals(), signal.SIGABRT):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        # A group of its own: Ctrl-C at a terminal comes once, from the parent.
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:  # else it died before it could be noticed
            slot.put(None)
            code = serve(ticket, slot)
    except SystemExit as wish:
        code = wish.code if isinstance(wish.code, int) else 1
    except BaseException:
        log.exception("zkfc.failed")
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        # Whatever the parent would do at its own end is not the child's to do.
        os._exit(code)
