"""Asks every process of the cluster at once, each answer within one common deadline."""

import asyncio
import dataclasses
import importlib
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol, cast

from ha.cluster import view
from ha.cluster.agreement import CLOCK_FIELD, Skew, skews
from ha.cluster.connections import ONE_EACH, Connections
from ha.cluster.namenode_queries import ask_namenode
from ha.cluster.query import Look, NoAnswer, fetch
from ha.cluster.strangers import mark_strangers
from ha.cluster.zookeeper_queries import OpenSession, ask_zookeeper
from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.keys import journal as keys_journal
from ha.conf.topology import HostPort, JournalUri, NameNodeAddress, namenodes, shared_edits
from ha.elector.zookeeper.settings import zookeeper_settings
from ha.elector.zookeeper.znodes import connected
from ha.notices.codec import entries, entry
from ha.security.own_tls import ending_certificates

_JOURNAL_PROBE = "journal.cli.probe:journal_probe"
"""Found by name when it is called, as `ha` imports nothing of `journal`."""
_ZKFC_ENTRIES: Final = (
    "health", "health_reason", "elector", "zookeeper", "session_timeout_seconds", "in_election",
    "out_because", "fencing_methods", "takeover", "handing_over_from", "flapping",
    "fail_back_in_seconds", "health_changes", "daemon",
    CLOCK_FIELD,
)  # fmt: skip
_JOURNALNODE_ENTRIES: Final = (
    "learner", "cluster_id", "promised_epoch", "writer_epoch", "committed_txid", "last_txid",
    "disk_free_bytes", "disk_total_bytes", "disk_warning", "damaged_segments", "daemon",
    "failed_because",
)  # fmt: skip


class JournalProbe(Protocol):
    """A JournalNode that can be asked; see journal/cli/probe.py."""

    def status(self, *, timeout_seconds: float) -> Awaitable[Mapping[str, object]]:
        """Return what it reports about one journal."""
        ...


OpenProbe = Callable[..., AbstractAsyncContextManager[JournalProbe]]


async def look_at(
    configuration: Configuration,
    nameservice: str,
    *,
    deadline_seconds: float,
    open_session: OpenSession = connected,
    connections: Connections = ONE_EACH,
) -> view.ClusterView:
    """Ask all, in parallel, and put what they say side by side.

    ``open_session`` gives the session in which ZooKeeper is asked, ``connections`` those to the
    NameNodes and JournalNodes.  The deadline counts from the first question: what must be loaded
    is loaded before.  Raises ``ConfigurationError``; a process that does not answer only has that
    in its row.
    """
    nodes = namenodes(configuration, nameservice)
    automatic = configuration.get(keys.AUTO_FAILOVER, nameservice=nameservice)
    shared = configuration.get(keys_journal.SHARED_EDITS, nameservice=nameservice)
    journal = shared_edits(configuration, nameservice) if shared else JournalUri((), "")
    zookeeper = zookeeper_settings(configuration, nameservice=nameservice) if automatic else None
    probe = load_journal_probe() if journal.nodes else None
    started = time.monotonic()
    taken_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    look = Look(deadline_seconds, connections)
    try:
        namenode_rows, zkfc_rows, journal_rows, ensemble = await asyncio.gather(
            asyncio.gather(*(ask_namenode(look, node) for node in nodes)),
            asyncio.gather(*(_zkfc(look, node) for node in (nodes if automatic else ()))),
            _journalnodes(look, probe, journal, nameservice),
            ask_zookeeper(look, zookeeper, open_session),
        )
    finally:
        look.end()
    return view.ClusterView(
        nameservice=nameservice,
        taken_at=taken_at,
        seconds=round(time.monotonic() - started, 3),
        automatic_failover=automatic,
        namenodes=tuple(namenode_rows),
        zkfcs=tuple(view.row_from_znode(row, ensemble.notices) for row in zkfc_rows),
        journalnodes=journal_rows,
        zookeepers=ensemble.servers,
        lock=ensemble.lock,
        notices=ensemble.notices,
        certificates=ending_certificates(),
        limit_seconds=deadline_seconds,
        own_delay_seconds=round(look.own_delay_seconds, 3),
    )


async def _zkfc(look: Look, node: NameNodeAddress) -> view.ZkfcRow:
    row = view.ZkfcRow(node.namenode, str(node.zkfc))
    page, port = await asyncio.gather(
        look.ask(fetch(node.zkfc_http)), look.ask(_knock(node.zkfc)), return_exceptions=True
    )
    if isinstance(page, NoAnswer):
        # Its page may be bound to its own host alone, as it is by default: then its RPC port and
        # its member in ZooKeeper speak for it.
        page_error, rpc_error = str(page), str(port) if isinstance(port, NoAnswer) else None
        return dataclasses.replace(row, error=rpc_error or page_error, page_only=rpc_error is None)
    if isinstance(page, BaseException):
        raise page
    found = entry(str, page.get("namenode")) or node.namenode
    if found != node.namenode:
        error = f"its status page at {node.zkfc_http} is that of {found}"
        return dataclasses.replace(row, error=error, page_only=not isinstance(port, NoAnswer))
    return dataclasses.replace(
        row,
        note=entry(str, page.get("failover_off_because")) or entry(str, page.get("kept_because")),
        last_failure=_last_failure(page.get("last_attempt")),
        **entries(view.ZkfcRow, page, _ZKFC_ENTRIES),
    )


async def ask_clocks(
    configuration: Configuration, nameservice: str, *, seconds: float
) -> tuple[Skew, ...]:
    """Return how far the clocks of all ZKFCs are ahead of ours; nothing of those not reached."""
    look = Look(seconds)
    try:
        nodes = namenodes(configuration, nameservice)
        return skews(await asyncio.gather(*(_zkfc(look, node) for node in nodes)))
    finally:
        look.end()


async def _knock(address: HostPort) -> None:
    """Connect to the address and hang up; raises OSError if no process listens there."""
    _, writer = await asyncio.open_connection(address.host, address.port)
    writer.close()


def _last_failure(attempt: object) -> str | None:
    if not isinstance(attempt, dict) or attempt.get("succeeded") is not False:
        return None
    return entry(str, attempt.get("text")) or "it gives no reason"


async def _journalnodes(
    look: Look, probe: OpenProbe | None, journal: JournalUri, nameservice: str
) -> tuple[view.JournalNodeRow, ...]:
    rows = await asyncio.gather(
        *(_journalnode(look, probe, node, journal, nameservice) for node in journal.nodes)
    )
    return mark_strangers(rows)


async def _journalnode(
    look: Look, probe: OpenProbe | None, node: HostPort, journal: JournalUri, nameservice: str
) -> view.JournalNodeRow:
    row = view.JournalNodeRow(str(node))
    if probe is None:
        return dataclasses.replace(row, error="the journal package is not installed here")

    names = {"journal_id": journal.journal_id, "nameservice_id": nameservice}
    opened = partial(probe, node.host, node.port, **names)
    question = look.connections.ask(
        node, opened, lambda asked: asked.status(timeout_seconds=look.longest())
    )
    try:
        answer = await look.ask(question)
    except NoAnswer as error:
        if "not formatted" in str(error):
            return dataclasses.replace(row, formatted=False)
        return dataclasses.replace(row, error=str(error))
    return dataclasses.replace(
        row,
        formatted=bool(answer.get("formatted")),
        **entries(view.JournalNodeRow, answer, _JOURNALNODE_ENTRIES),
    )


def load_journal_probe() -> OpenProbe | None:
    """Return the function that opens a probe of a JournalNode; None without the journal package.

    A caller whose look must not pause at its beginning should load it before.
    """
    module_name, _, attribute = _JOURNAL_PROBE.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        return None
    return cast("OpenProbe", getattr(module, attribute))
