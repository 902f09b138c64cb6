"""Clients of HDFS that share paths, ask at random, and write down every call and its answer.

Run as a process of its own on the clients' host: ``python -m`` this module, with a plan as JSON on
its command line.  It ends on SIGTERM, once the calls that are under way have ended.
"""

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TextIO, assert_never

from google.protobuf.message import Message

from ha.conf.topology import HostPort
from ha.rpc.java_names import FILE_ALREADY_EXISTS, FILE_NOT_FOUND
from ha.rpc.packets import CallAnswer, Status
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from tests.campaigns.soak.faults.caller import Caller, NoAnswer
from tests.campaigns.soak.faults.certified import calling_under
from tests.campaigns.soak.faults.history import (
    ABSENT,
    TAKEN,
    UNKNOWN,
    Ask,
    Call,
    calls_of,
    line_of,
    paths_of,
    read_calls,
)

LIVE_PAIRS: Final = 2
CALLS_PER_PAIR: Final = 90
"""Then another pair takes its place: the search for an order grows with the length of a history.

Things move between the two paths of a pair only, or all paths would be one object.
"""
PAUSE_SECONDS: Final = (0.02, 0.08)
RECENT_BYTES: Final = 2000
"""The last ten calls or so."""
_WEIGHTS: Final = {Ask.MAKE: 20, Ask.OWN: 35, Ask.DELETE: 12, Ask.READ: 33, Ask.MOVE: 12}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a process of clients is to do; with ``audit`` it reads each path of the history once."""

    seed: int
    clients: int
    servers: tuple[tuple[str, str, int], ...]
    """Name, host and port of each NameNode."""
    root: str
    history: str
    audit: bool = False
    first_client: int = 0
    reads_only: bool = False
    """Read what others write, as their history shows."""
    certificate: str = ""
    """The folder of the certificate under which all of them call; empty: in plain."""


class UnexpectedAnswer(Exception):
    """A NameNode gave an answer that the call cannot have; says which."""


def argv(plan: Plan) -> list[str]:
    return [sys.executable, "-m", __name__, json.dumps(asdict(plan))]


class _Paths:
    """The pairs of paths that all clients share just now."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._made = 0
        self._live: list[tuple[int, int]] = []

    def one(self, rng: random.Random) -> tuple[str, str]:
        """Return a path to ask for, and the other one of its pair; count the call."""
        while len(self._live) < LIVE_PAIRS:
            self._live.append((self._made, CALLS_PER_PAIR))
            self._made += 1
        pair, left = self._live.pop(rng.randrange(LIVE_PAIRS))
        if left > 1:
            self._live.append((pair, left - 1))
        one, other = rng.sample((f"{self._root}/p{pair}", f"{self._root}/q{pair}"), 2)
        return one, other


def request_of(ask: Ask, path: str, value: str) -> tuple[str, Message, bool]:
    """Return method, message, and whether it may be sent again without an answer."""
    match ask:
        case Ask.MAKE:
            mode = FsPermissionProto(perm=0o755)
            message: Message = calls.MkdirsRequestProto(src=path, masked=mode, createParent=True)
            return "mkdirs", message, False
        case Ask.OWN:
            return "setOwner", calls.SetOwnerRequestProto(src=path, username=value), False
        case Ask.DELETE:
            return "delete", calls.DeleteRequestProto(src=path, recursive=True), True
        case Ask.READ:
            return "getFileInfo", calls.GetFileInfoRequestProto(src=path), True
        case Ask.MOVE:
            message = calls.Rename2RequestProto(src=path, dst=value, overwriteDest=False)
            return "rename2", message, True
    assert_never(ask)


def meaning(ask: Ask, answer: CallAnswer) -> str:
    """Return what a history calls this answer.

    A refusal for any reason but that nothing is there says nothing: an active that loses its quorum
    refuses calls that it may have written.

    Raises:
        UnexpectedAnswer: no NameNode may answer this.
    """
    if answer.status is not Status.SUCCESS:
        if answer.java_class == FILE_NOT_FOUND and ask in (Ask.OWN, Ask.MOVE):
            return ABSENT
        return TAKEN if answer.java_class == FILE_ALREADY_EXISTS and ask is Ask.MOVE else UNKNOWN
    match ask:
        case Ask.MAKE:
            if not calls.MkdirsResponseProto.FromString(answer.body).result:
                raise UnexpectedAnswer("mkdirs returned false")
            return ""
        case Ask.OWN | Ask.MOVE:
            return ""
        case Ask.DELETE:
            return "" if calls.DeleteResponseProto.FromString(answer.body).result else ABSENT
        case Ask.READ:
            told = calls.GetFileInfoResponseProto.FromString(answer.body)
            return told.fs.owner if told.HasField("fs") else ABSENT
    assert_never(ask)


class _Client:
    """One client and what it writes down."""

    def __init__(self, plan: Plan, number: int, history: TextIO) -> None:
        # Another process with this seed would be another client: the NameNode remembers the first.
        own = random.SystemRandom().randbytes(16)
        servers = [(name, HostPort(host, port)) for name, host, port in plan.servers]
        self.number = number
        self._caller = Caller(own, servers)
        self._history = history
        self._values = 0

    async def ask(self, ask: Ask, path: str, other: str = "") -> str:
        """Make one call (``other``: where a move goes), note it; return its answer."""
        value = other if ask is Ask.MOVE else ""
        if ask is Ask.OWN:
            self._values += 1
            value = f"c{self.number}v{self._values}"
        method, message, again = request_of(ask, path, value)
        began = time.monotonic()
        try:
            answered, by = await self._caller.call(method, message, again=again)
            answer = meaning(ask, answered)
            if answer == UNKNOWN:
                sys.stderr.write(f"{by} refused {method} {path}: {answered.java_class}: "
                                 f"{answered.message.splitlines()[:1]}\n")  # fmt: skip
        except NoAnswer as silence:
            sys.stderr.write(f"{silence}\n")
            answer, by = UNKNOWN, ""
        ended = time.monotonic()
        told = Call(self.number, path, ask, value, began, ended, answer, by)
        self._history.write(line_of(told))
        self._history.flush()
        return answer

    def close(self) -> None:
        self._caller.close()


async def _wander(
    client: _Client, paths: _Paths, rng: random.Random, goes_on: Callable[[], bool]
) -> None:
    kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    while goes_on():
        await client.ask(rng.choices(kinds, weights)[0], *paths.one(rng))
        await asyncio.sleep(rng.uniform(*PAUSE_SECONDS))
    client.close()


async def _read_recent(
    client: _Client, history: Path, rng: random.Random, goes_on: Callable[[], bool]
) -> None:
    """Read the paths that others have changed last."""
    while goes_on():
        if paths := _recent(history):
            await client.ask(Ask.READ, rng.choice(paths))
        await asyncio.sleep(rng.uniform(*PAUSE_SECONDS))
    client.close()


def _recent(history: Path) -> list[str]:
    with history.open("rb") as file:
        file.seek(max(0, history.stat().st_size - RECENT_BYTES))
        _, *lines = file.read().decode().splitlines(keepends=True) or [""]
    return paths_of(calls_of(lines))


async def _read_all(client: _Client, paths: list[str], goes_on: Callable[[], bool]) -> None:
    """Take paths away until none is left; one that gives no answer is asked for again."""
    while paths and goes_on():
        path = paths.pop()
        if await client.ask(Ask.READ, path) == UNKNOWN:
            paths.append(path)
    client.close()


async def _play(plan: Plan) -> None:
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)

    def goes_on() -> bool:
        return not ending.is_set()

    place = Path(plan.history)
    known = paths_of(read_calls(place)) if plan.audit else []
    with place.open("a") as history:
        numbers = range(plan.first_client, plan.first_client + plan.clients)
        clients = [_Client(plan, number, history) for number in numbers]
        async with asyncio.TaskGroup() as group:
            if plan.audit:
                for client in clients:
                    group.create_task(_read_all(client, known, goes_on))
                return
            paths = _Paths(plan.root)
            for client in clients:
                rng = random.Random(f"{plan.seed} client {client.number}")
                if plan.reads_only:
                    group.create_task(_read_recent(client, place, rng, goes_on))
                    continue
                group.create_task(_wander(client, paths, rng, goes_on))


def main() -> None:
    found = json.loads(sys.argv[1])
    servers = tuple(tuple(server) for server in found.pop("servers"))
    plan = Plan(servers=servers, **found)
    with calling_under(Path(plan.certificate) if plan.certificate else None):
        asyncio.run(_play(plan))


if __name__ == "__main__":
    main()
