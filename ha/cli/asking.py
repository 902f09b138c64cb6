"""Asks every process of the cluster at once, each answer within one common deadline."""

import asyncio
import dataclasses
import importlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar, cast

import aiohttp

from ha.cli.cluster_view import (
    ClusterView,
    JournalNodeRow,
    JournalView,
    LockView,
    NameNodeRow,
    ZkfcRow,
    ZooKeeperRow,
)
from ha.conf import keys, keys_journal
from ha.conf.configuration import Configuration
from ha.conf.topology import HostPort, JournalUri, NameNodeAddress, namenodes, shared_edits
from ha.conf.units import hosts_and_ports
from ha.elector.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.settings import ZooKeeperSettings, zookeeper_settings
from ha.elector.znodes import read_active
from ha.service.client import ServiceClient
from ha.service.errors import ServiceRefused, ServiceUnreachable
from ha.service.model import ServiceStatus

JOURNAL_PROBE = "journal.client.probe:journal_status"
"""Found by name when it is called, as `ha` imports nothing of `journal`."""

MAX_ANSWER_BYTES = 1024 * 1024
MAX_TEXT_CHARACTERS = 300
AT_LEAST_SECONDS = 1.2
LOCK_RESERVE_SECONDS = 0.2
"""Kept back of the deadline for hanging up on ZooKeeper."""
_SOON = 0.01

R = TypeVar("R")
JournalProbe = Callable[..., Awaitable[Mapping[str, object]]]


class NoAnswer(Exception):
    """Why a process did not answer, in a few words for its row."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the cluster: when it must be over, and how long it may take in words."""

    deadline: float
    seconds: float

    @classmethod
    def starting_now(cls, seconds: float, *, spent_seconds: float = 0.0) -> "Look":
        """A look that must be over in so many seconds, less what the start has already taken.

        However slow the start was, the processes get ``AT_LEAST_SECONDS`` of it.
        """
        left = max(min(AT_LEAST_SECONDS, seconds), seconds - spent_seconds)
        return cls(asyncio.get_running_loop().time() + left, seconds)

    def left(self) -> float:
        """Seconds until the deadline, at least a moment."""
        return max(_SOON, self.deadline - asyncio.get_running_loop().time())

    async def ask(self, question: Awaitable[R]) -> R:
        """The answer.  Raises ``NoAnswer`` with the reason for the row."""
        try:
            async with asyncio.timeout_at(self.deadline):
                return await question
        except (ServiceRefused, ZooKeeperRefused, BadBreadcrumb, ValueError) as error:
            raise NoAnswer(f"answers with an error: {error}") from error
        except (
            TimeoutError,
            OSError,
            EOFError,
            ServiceUnreachable,
            ZooKeeperUnavailable,
            aiohttp.ClientError,
        ) as error:
            raise NoAnswer(self._in_words(error)) from error

    def _in_words(self, error: BaseException) -> str:
        causes = list(_causes(error))
        if any(isinstance(one, ConnectionRefusedError) for one in causes):
            return "not running (connection refused)"
        if any(isinstance(one, TimeoutError) for one in causes) or self.left() <= _SOON:
            return f"no answer in {self.seconds:g} s"
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        return str(error) or type(error).__name__


async def look_at(
    configuration: Configuration,
    nameservice: str,
    *,
    deadline_seconds: float,
    spent_seconds: float = 0.0,
) -> ClusterView:
    """Ask all, in parallel, and put what they say side by side.

    ``spent_seconds`` of the deadline are over already, since the person began to wait.  Raises
    ``ConfigurationError``; a process that does not answer only has that in its row.
    """
    nodes = namenodes(configuration, nameservice)
    automatic = configuration.get(keys.AUTO_FAILOVER, nameservice=nameservice)
    shared = configuration.get(keys_journal.SHARED_EDITS, nameservice=nameservice)
    journal = shared_edits(configuration, nameservice) if shared else JournalUri((), "")
    zookeeper = zookeeper_settings(configuration, nameservice=nameservice) if automatic else None
    started = time.monotonic()
    taken_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    look = Look.starting_now(deadline_seconds, spent_seconds=spent_seconds)
    async with aiohttp.ClientSession(trust_env=False) as http:
        namenode_rows, zkfc_rows, journal_rows, (zookeeper_rows, lock) = await asyncio.gather(
            asyncio.gather(*(_namenode(look, http, node) for node in nodes)),
            asyncio.gather(*(_zkfc(look, http, node) for node in (nodes if automatic else ()))),
            _journalnodes(look, journal, nameservice),
            _zookeeper(look, zookeeper),
        )
    return ClusterView(
        nameservice=nameservice,
        taken_at=taken_at,
        seconds=round(time.monotonic() - started, 3),
        automatic_failover=automatic,
        namenodes=tuple(namenode_rows),
        zkfcs=tuple(zkfc_rows),
        journalnodes=journal_rows,
        zookeepers=zookeeper_rows,
        lock=lock,
    )


async def _namenode(look: Look, http: aiohttp.ClientSession, node: NameNodeAddress) -> NameNodeRow:
    row = NameNodeRow(node.namenode, str(node.rpc))
    # The role comes over RPC, which a Java NameNode answers too; the numbers are on our own page.
    rpc, page = await asyncio.gather(
        look.ask(_service_status(look, node.service)),
        look.ask(_fetch(http, node.http)),
        return_exceptions=True,
    )
    if isinstance(rpc, NoAnswer):
        return dataclasses.replace(row, error=str(rpc))
    if isinstance(rpc, BaseException):
        raise rpc
    row = dataclasses.replace(
        row,
        state=rpc.state.value,
        ready=rpc.ready_to_become_active,
        not_ready_reason=rpc.not_ready_reason or None,
    )
    if isinstance(page, NoAnswer):
        return dataclasses.replace(row, note=f"status page: {page}")
    if isinstance(page, BaseException):
        raise page
    return dataclasses.replace(
        row,
        epoch=_whole(page, "epoch"),
        last_txid=_whole(page, "last_txid"),
        journal=_journal_views(page.get("journal")),
    )


async def _service_status(look: Look, address: HostPort) -> ServiceStatus:
    client = await ServiceClient.open(address, deadline_seconds=look.left())
    try:
        return await client.status(deadline_seconds=look.left())
    finally:
        await client.close()


async def _zkfc(look: Look, http: aiohttp.ClientSession, node: NameNodeAddress) -> ZkfcRow:
    row = ZkfcRow(node.namenode, str(node.zkfc))
    try:
        page = await look.ask(_fetch(http, node.zkfc_http))
    except NoAnswer as error:
        return dataclasses.replace(row, error=str(error))
    return dataclasses.replace(
        row,
        health=_text(page, "health"),
        health_reason=_text(page, "health_reason"),
        elector=_text(page, "elector"),
        zookeeper=_text(page, "zookeeper"),
        session_timeout_seconds=_number(page, "session_timeout_seconds"),
    )


async def _journalnodes(
    look: Look, journal: JournalUri, nameservice: str
) -> tuple[JournalNodeRow, ...]:
    # The others have their questions on the way by now: gRPC is loaded while they are answered.
    await asyncio.sleep(0)
    probe = _journal_probe()
    return tuple(
        await asyncio.gather(
            *(_journalnode(look, probe, node, journal, nameservice) for node in journal.nodes)
        )
    )


async def _journalnode(
    look: Look, probe: JournalProbe | None, node: HostPort, journal: JournalUri, nameservice: str
) -> JournalNodeRow:
    row = JournalNodeRow(str(node))
    if probe is None:
        return dataclasses.replace(row, error="the journal package is not installed here")

    question = probe(
        node.host,
        node.port,
        journal_id=journal.journal_id,
        nameservice_id=nameservice,
        timeout_seconds=look.left(),
    )
    try:
        answer = await look.ask(question)
    except NoAnswer as error:
        return dataclasses.replace(row, error=str(error))
    return dataclasses.replace(
        row,
        formatted=bool(answer.get("formatted")),
        promised_epoch=_whole(answer, "promised_epoch"),
        writer_epoch=_whole(answer, "writer_epoch"),
        committed_txid=_whole(answer, "committed_txid"),
        last_txid=_whole(answer, "last_txid"),
        disk_free_bytes=_whole(answer, "disk_free_bytes"),
        disk_total_bytes=_whole(answer, "disk_total_bytes"),
        failed_because=_text(answer, "failed_because"),
    )


async def _zookeeper(
    look: Look, settings: ZooKeeperSettings | None
) -> tuple[tuple[ZooKeeperRow, ...], LockView]:
    if settings is None:
        return (), LockView()
    servers = hosts_and_ports()(settings.hosts)
    rows = tuple(await asyncio.gather(*(_zookeeper_server(look, server) for server in servers)))
    # A frozen server accepts a session and keeps it: only those that answered are asked further.
    well = [row.server for row in rows if row.error is None]
    if not well:
        return rows, LockView(error="no ZooKeeper server answers")
    answering = dataclasses.replace(settings, hosts=",".join(well))
    seconds = max(0.1, look.left() - LOCK_RESERVE_SECONDS)
    try:
        holder = await look.ask(read_active(answering, deadline_seconds=seconds))
    except NoAnswer as error:
        return rows, LockView(error=str(error))
    return rows, LockView(holder=None if holder is None else holder.namenode)


async def _zookeeper_server(look: Look, server: HostPort) -> ZooKeeperRow:
    """Ask with the four-letter word `srvr`, which ZooKeeper answers without being told to."""
    row = ZooKeeperRow(str(server))

    async def question() -> str:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        try:
            writer.write(b"srvr")
            return (await _to_the_end(reader)).decode("utf-8", "replace")
        finally:
            writer.close()

    try:
        answer = await look.ask(question())
    except NoAnswer as error:
        return dataclasses.replace(row, error=str(error))
    for line in answer.splitlines():
        name, _, value = line.partition(":")
        if name == "Mode":
            return dataclasses.replace(row, mode=value.strip()[:MAX_TEXT_CHARACTERS])
    if "not currently serving" in answer:
        return dataclasses.replace(row, error="up, but not serving (no quorum)")
    return dataclasses.replace(row, mode="unknown")  # it answers; `srvr` is not allowed there


async def _fetch(http: aiohttp.ClientSession, address: HostPort) -> Mapping[str, object]:
    async with http.get(f"http://{address}/status", allow_redirects=False) as response:
        body = await _to_the_end(response.content)
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}")
    page = json.loads(body)
    if not isinstance(page, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - it is an answer's fault
    return cast("Mapping[str, object]", page)


async def _to_the_end(reader: asyncio.StreamReader | aiohttp.StreamReader) -> bytes:
    """Everything until the peer closes.  Raises ``ValueError`` beyond ``MAX_ANSWER_BYTES``."""
    found = bytearray()
    while chunk := await reader.read(64 * 1024):
        found += chunk
        if len(found) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")
    return bytes(found)


def _journal_probe() -> JournalProbe | None:
    module_name, _, attribute = JOURNAL_PROBE.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        return None
    return cast("JournalProbe", getattr(module, attribute))


def _journal_views(found: object) -> tuple[JournalView, ...]:
    if not isinstance(found, list):
        return ()
    entries = [entry for entry in found if isinstance(entry, dict)]
    return tuple(
        JournalView(
            node=_text(entry, "node") or "",
            in_sync=entry.get("in_sync") is True,
            last_error=_text(entry, "last_error"),
        )
        for entry in entries
    )


def _causes(error: BaseException) -> tuple[BaseException, ...]:
    """The error and what it came from, also what a happy-eyeballs connect has gathered."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or one in found:
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return tuple(found)


def _whole(page: Mapping[str, object], key: str) -> int | None:
    value = page.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(page: Mapping[str, object], key: str) -> float | None:
    value = page.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(page: Mapping[str, object], key: str) -> str | None:
    value = page.get(key)
    return value[:MAX_TEXT_CHARACTERS] if isinstance(value, str) and value else None
