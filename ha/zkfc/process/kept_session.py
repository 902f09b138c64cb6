"""Keeps a controller's ZooKeeper session in a file for the controller that is started next.

The bad schedule: the controller, its supervisor and the NameNode are killed, and started again 1 s
later.  The lock of the killed controller lasts until its session expires, 10 s by default, and no
witness removes it, since the new controller answers.  With the session's number and password the
new controller continues that session or closes it.

It does so only if the file's process has provably ended: same boot, pid namespace and process.

See docs/reference/zkfc.md#a-service-that-is-killed.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import select
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from ha.daemon.identity import machine, started_ticks
from ha.elector.keeper import KazooKeeper
from ha.elector.zookeeper.session_ticket import SessionTicket, decode_ticket, encode_ticket
from ha.health.core import Health
from ha.service.model import ProcessIdentity
from ha.zkfc.process.controller import Controller

log = structlog.get_logger()

_MAX_BYTES: Final = 4096
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


INHERIT_SECONDS: Final = 3.0
"""How long after the start an inherited session waits until we join the election."""
INHERIT_LOOK_SECONDS: Final = 0.02


async def close_inherited(controller: Controller, contact: asyncio.Event) -> None:
    """Close the inherited session of a killed controller, unless we join the election with it.

    Otherwise its lock would keep peers from taking over while our NameNode is unhealthy or ended.
    """
    keeper, loop = controller.elector.keeper, asyncio.get_running_loop()
    if not isinstance(keeper, KazooKeeper):
        return
    await contact.wait()
    end = loop.time() + INHERIT_SECONDS
    ill = (Health.UNHEALTHY, Health.NOT_RESPONDING)
    while keeper.inherits and controller.health not in ill and loop.time() < end:  # noqa: ASYNC110 - two owners, no event
        await asyncio.sleep(INHERIT_LOOK_SECONDS)
    await keeper.close_inherited()


def has_ended(process: ProcessIdentity) -> bool | None:
    """Return whether exactly this process has ended; None if that cannot be determined here."""
    try:
        if process.machine != machine():
            return None
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return None
    try:
        ticks = started_ticks(process.pid)
        if ticks is not None and ticks != process.started_ticks:
            return True  # the pid has been given to another process
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        # Readable once no thread is left, even for a zombie.
        return bool(poll.poll(0))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def default_folder() -> Path:
    """Return systemd's runtime folder, else one in /dev/shm: a reboot deletes either."""
    given = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    return Path(given) if given else Path("/dev/shm", f"nnha-{os.geteuid()}")


class KeptSession:
    """The file with the session of one controller."""

    def __init__(
        self,
        folder: Path | None,
        node: str,
        ensemble: str,
        note: Callable[[SessionTicket | None], None] = lambda _: None,
        *,
        ended: Callable[[ProcessIdentity], bool | None] = has_ended,
    ) -> None:
        """Keep the session of ``node``, <nameservice>.<namenode>, at this ZooKeeper and scope.

        ``note`` is called first with each session, for a supervisor, which needs no file.
        """
        self._of = f"{node} at {ensemble}"
        digest = hashlib.sha256(self._of.encode()).hexdigest()[:12]
        self._note = note
        self._path = (folder or default_folder()) / f"zkfc-session-{node}-{digest}.json"
        self._ended = ended

    def take(self) -> SessionTicket | None:
        """Return the session of the controller before us if its process has ended; else None."""
        data = self._read()
        if data is None:
            return None
        ticket, holder, because = _parse(data, self._of)
        ended = holder is not None and self._ended(holder)
        if holder is not None and not ended:
            said = "runs" if ended is False else "cannot be seen from here"
            because = f"its process {holder.pid} {said}"
        if because:
            log.warning("zkfc.kept_session.left", path=str(self._path), because=because)
            return None
        log.info("zkfc.kept_session.taken", session=repr(ticket), path=str(self._path))
        return ticket

    def keep(self, ticket: SessionTicket | None) -> None:
        """Write our session, or delete it; a failure is logged, and costs a slower restart only."""
        self._note(ticket)
        try:
            if ticket is None:
                self._path.unlink(missing_ok=True)
            else:
                self._write(ticket)
        except (OSError, ValueError) as failure:
            log.warning("zkfc.kept_session.not_kept", path=str(self._path), because=str(failure))

    def forget(self) -> None:
        """Delete the session, which we give up: no later controller may use it."""
        self.keep(None)

    def _write(self, ticket: SessionTicket) -> None:
        folder = self._path.parent
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        _require_own(folder.lstat(), folder, stat.S_ISDIR)
        pid = os.getpid()
        holder = {"pid": pid, "started_ticks": started_ticks(pid), "machine": machine()}
        session = json.loads(encode_ticket(ticket))
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            file.write(json.dumps({"of": self._of, "holder": holder, **session}).encode())
        new.replace(self._path)

    def _read(self) -> bytes | None:
        try:
            _require_own(self._path.parent.lstat(), self._path.parent, stat.S_ISDIR)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                _require_own(os.fstat(descriptor), self._path, stat.S_ISREG)
                return file.read(_MAX_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            log.warning("zkfc.kept_session.left", path=str(self._path), because=str(failure))
            return None


def _require_own(found: os.stat_result, path: Path, kind: Callable[[int], bool]) -> None:
    """Raise ValueError if another user could have written it: its password gives the lock."""
    if not kind(found.st_mode):
        raise ValueError(f"{path} is not what it should be: mode {found.st_mode:o}")
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        raise ValueError(
            f"{path} is of user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}, and "
            f"must be ours alone: remove it, or set nnha.zkfc.session.dir"
        )


def _parse(data: bytes, own: str) -> tuple[SessionTicket | None, ProcessIdentity | None, str]:
    """Return the ticket, the process that held it, and why it must not be used, if so."""
    ticket = decode_ticket(data)
    try:
        found = json.loads(data)
        of = found["of"]
        holder = ProcessIdentity(
            int(found["holder"]["pid"]),
            int(found["holder"]["started_ticks"]),
            str(found["holder"]["machine"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None, None, "it cannot be read"
    if ticket is None:
        return None, None, "it holds no session"
    if of != own:
        return None, None, f"it is of {of}, and this controller is {own}"
    return ticket, holder, ""
