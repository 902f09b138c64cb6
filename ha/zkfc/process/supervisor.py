"""Supervises a controller: restarts a killed one at once, in its ZooKeeper session.

Without it, the lock of a killed controller lasts until the session expires.  A controller that its
guard ended has given its session up, and is restarted in a new one.  The parent has loaded all the
code, so that a forked child starts 0.4 s sooner.
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
"""Counted in the parent; each child inherits the value by fork."""

QUICK_SECONDS: Final = 1.0
"""A controller that ended sooner than this is restarted after a pause."""
PAUSES: Final = (0.0, 0.0, 0.2, 1.0, 5.0)
"""The pauses in seconds before the first restart, the second, and so on; then the last one."""

LAST_WORDS_SECONDS: Final = 1.0
"""How long a controller that systemd's watchdog ends may take to write its stack."""

_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SLOT_BYTES: Final = 1024
_HEAD: Final = struct.Struct("<II")
_PR_SET_PDEATHSIG: Final = 1


class TicketSlot:
    """Memory shared by controller and parent, which holds the session's ticket."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT_BYTES)

    def put(self, ticket: SessionTicket | None) -> None:
        """Store this ticket, or none."""
        data = b"" if ticket is None else encode_ticket(ticket)
        # The checksum detects a controller that was killed between two bytes.
        self._memory[: _HEAD.size + len(data)] = _HEAD.pack(len(data), zlib.crc32(data)) + data

    def take(self) -> SessionTicket | None:
        """Return the stored ticket; None if there is none or it was not stored whole."""
        length, checksum = _HEAD.unpack_from(self._memory)
        data = self._memory[_HEAD.size : _HEAD.size + min(length, _SLOT_BYTES)]
        return decode_ticket(data) if data and zlib.crc32(data) == checksum else None


Serve = Callable[[SessionTicket | None, TicketSlot], int]
"""Runs a controller, given its predecessor's ticket and a slot for its own; returns its code."""


def supervise(serve: Serve) -> int:
    """Run ``serve`` in a child until it exits by itself; return its exit code.

    A child that was killed, or ended by its guard, is replaced.  If it was killed, the next one
    gets its ticket.  SIGTERM, SIGINT and SIGHUP are forwarded; without a child they end us with 0.
    The child is killed when this process dies.  SIGABRT, from systemd's watchdog, is forwarded
    first: the stack that shows the cause is the child's.
    """
    slot = TicketSlot()
    ticket: SessionTicket | None = None
    quick_deaths = 0
    gc.collect()
    gc.freeze()  # keeps the loaded pages shared with the children
    with _forward_signals() as child:
        while True:
            began = time.monotonic()
            if not _fork_child(serve, ticket, slot, child):
                return _stop_code()
            status = child.wait()
            child.pid = 0
            stood_still = os.WIFEXITED(status) and os.WEXITSTATUS(status) == STOOD_STILL
            if os.WIFEXITED(status) and not stood_still:
                return os.WEXITSTATUS(status)
            if child.stopping:
                return STOOD_STILL if stood_still else _stop_code(os.WTERMSIG(status))
            quick_deaths = quick_deaths + 1 if time.monotonic() - began < QUICK_SECONDS else 0
            pause = PAUSES[min(quick_deaths, len(PAUSES) - 1)]
            # A child that its guard ended has given its session up; no other may use it.
            ticket = None if stood_still else slot.take()
            _restarts.labels("stood_still" if stood_still else "killed").inc()
            log.warning(
                "zkfc.killed",
                by_signal=0 if stood_still else os.WTERMSIG(status),
                stood_still=stood_still,
                session=repr(ticket),
                again_in_seconds=pause,
            )
            if child.sleep(pause):
                return _stop_code()


def _stop_code(by_signal: int = signal.SIGTERM) -> int:
    """Return the exit code of a stop without a child, or with one that a signal ended.

    0 for a forwarded signal, which ends a child that has no handlers yet.  For another signal, by
    which the child was killed while it stopped, 128 and its number, as in a shell.
    """
    log.info("zkfc.stopped_without_controller", by_signal=by_signal)
    return 0 if by_signal in _FORWARDED else 128 + by_signal


class _Child:
    """The child process, to which signals are forwarded."""

    def __init__(self, wakeup: int) -> None:
        """Use ``wakeup``, a descriptor that becomes readable at every signal."""
        self.pid = 0
        self.stopping = False
        self._wakeup = wakeup

    def forward(self, number: int, _frame: object) -> None:
        """Forward a signal to the child if there is one, and remember that we must stop."""
        self.stopping = True
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def abort(self, number: int, _frame: object) -> None:
        """Forward SIGABRT, wait for the stack that the child writes, and end by SIGABRT."""
        if self.pid:
            with contextlib.suppress(OSError):
                child = os.pidfd_open(self.pid)
                _signal_main_thread(self.pid, number)
                os.kill(self.pid, signal.SIGCONT)  # a stopped process handles no signal
                select.select([child], [], [], LAST_WORDS_SECONDS)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def wait(self) -> int:
        """Wait for the end of the child; return its status.

        The bad schedule without select: a signal arrives just before waitpid, and Python runs its
        handler only after waitpid, so that it is never forwarded.
        """
        child = os.pidfd_open(self.pid)
        try:
            while child not in (ready := select.select([child, self._wakeup], [], [])[0]):
                if self._wakeup in ready:
                    os.read(self._wakeup, _SLOT_BYTES)
            return os.waitpid(self.pid, 0)[1]
        finally:
            os.close(child)

    def sleep(self, seconds: float) -> bool:
        """Sleep; return whether a signal asked us to stop."""
        end = time.monotonic() + seconds
        while not self.stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
        return self.stopping


def _signal_main_thread(pid: int, number: int) -> None:
    """Signal the main thread; os.kill reaches another one if the main thread is stopped."""
    library = ctypes.CDLL(None)
    if hasattr(library, "tgkill"):
        library.tgkill(pid, pid, number)
    else:
        os.kill(pid, number)


def _forwarded_signals() -> tuple[signal.Signals, ...]:
    """Return the signals to forward, without ignored ones, as SIGHUP under nohup."""
    return tuple(one for one in _FORWARDED if signal.getsignal(one) is not signal.SIG_IGN)


@contextmanager
def _forward_signals() -> Iterator[_Child]:
    wakeup, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    child = _Child(wakeup)
    former = signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    before = {number: signal.signal(number, child.forward) for number in _forwarded_signals()}
    before[signal.SIGABRT] = signal.signal(signal.SIGABRT, child.abort)
    try:
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(former)
        os.close(wakeup)
        os.close(signalled)


def _fork_child(
    serve: Serve,
    ticket: SessionTicket | None,
    slot: TicketSlot,
    child: _Child,
) -> bool:
    """Fork the next child; return False if a signal asked us to stop before.

    Signals are blocked until we know the child's pid and the child has dropped our handlers: a
    signal in between would be lost, and the controller would never stop.
    """
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        if child.stopping:
            return False
        pid = os.fork()
        if pid == 0:
            _run_child(serve, ticket, slot, parent)
        child.pid = pid
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    return True


def _run_child(
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
        # A new process group: Ctrl-C reaches the child only once, from the parent.
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:  # else the parent died before prctl
            slot.put(None)
            code = serve(ticket, slot)
    except SystemExit as wish:
        code = wish.code if isinstance(wish.code, int) else 1
    except BaseException:
        log.exception("zkfc.failed")
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        # _exit: the child must not run the parent's exit handlers.
        os._exit(code)
