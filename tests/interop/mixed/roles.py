"""What the NameNodes say they are, asked over HAServiceProtocol; and a check that one is active."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from ha.conf.topology import HostPort
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import ServiceState, ServiceStatus

ANSWER_SECONDS = 2.0
BETWEEN_LOOKS_SECONDS = 0.05
JOIN_SECONDS = 20.0


async def status_of(address: HostPort) -> ServiceStatus | None:
    """Return the answer of a NameNode of either kind; None where there is none in time."""
    try:
        async with ServiceClient.connected(address, deadline_seconds=ANSWER_SECONDS) as client:
            return await client.status(deadline_seconds=ANSWER_SECONDS)
    except ServiceError:
        return None


async def state_of(address: HostPort) -> ServiceState | None:
    status = await status_of(address)
    return None if status is None else status.state


@dataclass(slots=True)
class RoleWatch:
    """Asks both NameNodes again and again, in a thread, and notes each time that both are active.

    The answers of two NameNodes are not of one moment.  Both were active together if the second
    one says so between two answers of the first one that say the same.
    """

    addresses: Mapping[str, HostPort]
    looks: int = 0
    both_active: list[str] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "RoleWatch":
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    async def _watch(self) -> None:
        (first, there), (second, here) = self.addresses.items()
        while not self._stopping.is_set():
            self.looks += 1
            if (
                await state_of(there) is ServiceState.ACTIVE
                and await state_of(here) is ServiceState.ACTIVE
                and await state_of(there) is ServiceState.ACTIVE
            ):
                self.both_active.append(f"look {self.looks}: {first} and {second} are active")
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)
