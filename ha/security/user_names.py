"""The names of local users, looked up off the event loop: a directory service may take long."""

import asyncio
import pwd
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

KEPT_SECONDS: Final = 300.0
MOST: Final = 1024


class UserNames:
    """What each uid is called."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, str]] = {}
        self._asking: dict[int, asyncio.Task[str]] = {}

    def known(self, uid: int) -> str:
        """Return the name as it was found a while ago; empty if it was not looked up."""
        until, name = self._known.get(uid, (0.0, ""))
        return name if time.monotonic() < until else ""

    async def find(self, uid: int) -> str:
        """Return the name; the uid in digits where there is none, as ``id -un`` would say."""
        if name := self.known(uid):
            return name
        task = self._asking.get(uid)
        if task is None:
            task = self._asking[uid] = asyncio.create_task(self._ask(uid), name="user name")
        return await asyncio.shield(task)

    async def _ask(self, uid: int) -> str:
        try:
            name = await asyncio.to_thread(_looked_up, uid)
        finally:
            del self._asking[uid]
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[uid] = (time.monotonic() + KEPT_SECONDS, name)
        return name


def _looked_up(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return str(uid)


def local_uid(user: str, table: Path = Path("/etc/passwd")) -> int | None:
    """Return a user's uid in this machine's own table, no directory: a stranger chose the name."""
    with suppress(OSError, ValueError), table.open(errors="replace") as lines:
        for line in lines:
            if line.startswith(f"{user}:"):
                return int(line.split(":")[2])
    return None
