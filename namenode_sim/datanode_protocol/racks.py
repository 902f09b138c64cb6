"""Looks up the racks of hosts, in a thread: a table of the configuration, or its script.

See docs/reference/datanodes.md#racks.
"""

import asyncio
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from ha.record import dataclass
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import UnevenRacks
from namenode_sim.datanodes.membership.rack_names import depth, racks_printed, table_of
from namenode_sim.datanodes.model import DEFAULT_RACK, DatanodeId

log = structlog.get_logger()

SCRIPT_SECONDS: Final = 10.0
FAILED_SECONDS: Final = 60.0
"""After this time a host is looked up again whose rack could not be found out."""

MOST_KNOWN: Final = 20_000
"""The most hosts that are remembered; clients are among them."""

MOST_BYTES: Final = 64 * 1024
_POLL_SECONDS: Final = 0.05
SHOWN_CHARACTERS: Final = 300


async def move_to_racks(cluster: Cluster, racks: "Racks") -> bool:
    """Look the racks of all DataNodes up anew; return whether any stands elsewhere now.

    Raises UnevenRacks if live ones are on different levels; all stay where they were then.
    """
    racks.forget()
    await racks.learn(node.id.ip for node in cluster.nodes.values())
    found = {uuid: await racks.of(node.id) for uuid, node in list(cluster.nodes.items())}
    after = {node: found.get(uuid) or node.rack for uuid, node in cluster.nodes.items()}
    deepest = max((after[node] for node in after if node.alive), key=depth, default="")
    for node, rack in after.items():
        if node.alive and depth(rack) != depth(deepest):
            raise UnevenRacks(node.id.uuid, rack, deepest)
    moved = [node for node, rack in after.items() if node.rack != rack]
    for node in moved:
        node.rack = after[node]
    return bool(moved)


class LookupFailed(Exception):
    """The racks of hosts are not known; the message says why, in one line."""


Source = Callable[[Sequence[str]], Mapping[str, str]]
"""Returns the racks of hosts, in a thread; raises LookupFailed. What it lacks has the default."""


@dataclass(frozen=True, slots=True)
class Table:
    """net.topology.table.file.name: two columns, an address or a name and its rack."""

    file: Path

    def __call__(self, names: Sequence[str]) -> Mapping[str, str]:
        """Look hosts up; the whole table is returned, which is read anew each time."""
        del names
        try:
            found, bad = table_of(self.file.read_text())
        except (OSError, ValueError) as problem:
            raise LookupFailed(f"the table {self.file} cannot be read: {problem}") from problem
        if bad:
            log.warning("racks.bad_lines", file=str(self.file), lines=bad, state="passed over")
        return found


@dataclass(frozen=True, slots=True)
class Script:
    """net.topology.script.file.name: it gets some addresses, and prints as many racks."""

    file: str
    most_arguments: int = 100
    seconds: float = SCRIPT_SECONDS

    def __call__(self, names: Sequence[str]) -> Mapping[str, str]:
        """Run the script, for some hosts at a time."""
        found: dict[str, str] = {}
        for begin in range(0, len(names), self.most_arguments):
            some = names[begin : begin + self.most_arguments]
            racks = racks_printed(self._output(some), some)
            if isinstance(racks, str):
                raise LookupFailed(f"the script {self.file} failed: {racks}")
            found |= racks
        return found

    def _output(self, names: Sequence[str]) -> str:
        # Into files: a process that the script leaves behind would hold a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    [self.file, *names], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as problem:
                raise LookupFailed(f"the script {self.file} cannot be run: {problem}") from problem
            ends, size = time.monotonic() + self.seconds, 0
            while process.returncode is None and time.monotonic() < ends and size < MOST_BYTES:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                size = os.fstat(out.fileno()).st_size + os.fstat(errors.fileno()).st_size
            how = f"exited with {process.returncode}"
            if process.returncode is None:
                how = f"was ended after {self.seconds:g} s or {MOST_BYTES} bytes"
                os.killpg(process.pid, signal.SIGKILL)  # with all that it has started
                process.wait()
            out.seek(0)
            errors.seek(0)
            if process.returncode == 0:
                return out.read(MOST_BYTES).decode(errors="replace")
            said = " ".join(errors.read(SHOWN_CHARACTERS).decode(errors="replace").split())
            raise LookupFailed(f"the script {self.file} {how}: {said}")


class Racks:
    """The racks that were looked up; without a ``source`` all hosts are on the default rack."""

    def __init__(
        self, source: Source | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._source, self._clock = source, clock
        self._known: dict[str, tuple[str | None, float]] = {}
        """By host: the rack, None where it could not be found out, and until when that counts."""
        self._wanted: dict[str, None] = {}
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failing = False
        self._generation = 0

    async def of(self, who: DatanodeId) -> str | None:
        """Return a DataNode's rack, which is looked up first; None if it cannot be found out.

        Its address is asked for, as Hadoop asks; a table may name its host instead.
        """
        if self._source is None:
            return DEFAULT_RACK
        while not self._knows(who.ip):
            await self.learn([who.ip])
        rack = self._known[who.ip.lower()][0]
        if rack == DEFAULT_RACK and isinstance(self._source, Table):
            while not self._knows(who.host):
                await self.learn([who.host])
            rack = self._known[who.host.lower()][0]
        return rack

    def of_client(self, host: str) -> str | None:
        """Return the rack of a client's host; None while it is not known: it is looked up then."""
        if self._source is None:
            return DEFAULT_RACK
        if not host or not host.isprintable():
            return None  # of an old writer: a script would fail, for all that are asked for with it
        if self._knows(host):
            return self._known[host.lower()][0]
        self._wanted[host.lower()] = None
        if not self._tasks:
            task = asyncio.get_running_loop().create_task(self.learn([host]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return None

    def forget(self, who: DatanodeId | None = None) -> None:
        """Look a DataNode's rack up anew when it is asked for; without one all racks."""
        self._generation += 1
        for name in list(self._known) if who is None else (who.ip.lower(), who.host.lower()):
            self._known.pop(name, None)

    def _knows(self, name: str) -> bool:
        found = self._known.get(name.lower())
        return found is not None and self._clock() < found[1]

    async def learn(self, names: Iterable[str]) -> None:
        """Look hosts up, with all that others wait for in the meantime."""
        if self._source is None:
            return
        self._wanted.update((name.lower(), None) for name in names if not self._knows(name))
        async with self._one_at_a_time:
            asked, generation = list(self._wanted), self._generation
            if not asked:
                return
            found, until = await self._look_up(asked), self._clock() + FAILED_SECONDS
            for name in asked:
                self._wanted.pop(name, None)
            if generation != self._generation:
                return  # the table may be a newer one by now
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            for name in asked:
                rack = None if found is None else found.get(name, DEFAULT_RACK)
                self._known[name] = (rack, until if rack is None else math.inf)

    async def _look_up(self, names: Sequence[str]) -> Mapping[str, str] | None:
        assert self._source is not None
        found, why = None, ""
        try:
            found = await asyncio.to_thread(self._source, names)
        except (LookupFailed, OSError, ValueError) as failure:  # no room for what it prints
            why = str(failure)[: 2 * SHOWN_CHARACTERS]
        if why and not self._failing:
            log.warning("racks.lookup_failed", why=why, state=f"hosts count as on {DEFAULT_RACK}")
        if self._failing and not why:
            log.info("racks.lookup_works", hosts=len(names))
        self._failing = bool(why)
        return found
