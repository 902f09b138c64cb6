"""Looks at name directories, JournalNodes and peers, and changes nothing."""

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ha.conf.topology import NameNodeAddress
from ha.daemon.process import ExitWith
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from journal.errors import JournalError, NotFormatted
from journal.links.quorum_call import ask_once
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.messages import namespace_of
from journal.model import JournalId, NamespaceInfo
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.startup.prepare import model
from namenode_sim.storage.fill import is_blank
from namenode_sim.storage.version_file import parse_version
from namenode_sim.transfer.namenode_protocol import ask_facts

BEGUN: Final = "founding"
"""In each name directory, next to ``current``: the ids of a founding that is under way."""
ASK_SECONDS: Final = 5.0
DENIED: Final = 3
"""Exit code of a preparation that was refused."""


async def examine(place: NameNodeIdentity, directories: Sequence[Path]) -> model.Seen:
    """Return the state of directories, JournalNodes and peers.

    Raises:
        ExitWith: 3 where a file that says whose directory it is cannot be read as one.
        OSError: if the disk refuses.
    """
    journal, peers = await asyncio.gather(_ask_journal(place), _ask_peers(place.peers))
    return model.Seen(
        directories={str(path): _directory(path) for path in directories},
        journal=journal,
        peers=peers,
        begun=_find_begun(directories),
    )


def journal_address(place: NameNodeIdentity) -> JournalAddress:
    """Return the address of this nameservice's journal, on any node."""
    return JournalAddress(JournalId(place.journal.journal_id), place.address.nameservice)


def _directory(path: Path) -> model.Directory:
    version = path / "current" / "VERSION"
    if version.exists():
        return model.Whole(_ids_in(version))
    return model.Blank() if is_blank(path) else model.Half()


def _find_begun(directories: Iterable[Path]) -> NamespaceInfo | None:
    for directory in directories:
        if (record := directory / BEGUN).exists():
            return _ids_in(record)
    return None


def _ids_in(file: Path) -> NamespaceInfo:
    try:
        return parse_version(file.read_bytes())
    except ValueError as problem:
        raise ExitWith(DENIED, f"{file} cannot be used: {problem}. Nothing was changed.") from None


async def _ask_journal(place: NameNodeIdentity) -> Mapping[str, model.JournalNode]:
    answers = await ask_once(place.journal_nodes, journal_address(place), _node)
    return {
        str(node): model.Unclear(str(one)) if isinstance(one, JournalError) else one
        for node, one in sorted(answers.items())
    }


async def _node(remote: RemoteNode) -> model.JournalNode:
    try:
        status = await remote.status(ASK_SECONDS)
    except NotFormatted:
        return model.Unformatted()
    used = status.last_promised_epoch > 0 or status.HasField("last_written_txid")
    return model.Formatted(namespace_of(status.namespace_info), used=used)


async def _ask_peers(peers: Sequence[NameNodeAddress]) -> Mapping[str, model.Peer]:
    answers = await asyncio.gather(*(_peer(one) for one in peers))
    return {one.namenode: answer for one, answer in zip(peers, answers, strict=True)}


async def _peer(address: NameNodeAddress) -> model.Peer:
    try:
        facts = await ask_facts(address.rpc, deadline_seconds=ASK_SECONDS)
    except ConnectFailed as failure:
        # Before the first start of a cluster its NameNodes wait for us, and do not run yet.  A name
        # that does not resolve is that of a container that was not made yet.
        gone = isinstance(failure.__cause__, ConnectionRefusedError | socket.gaierror)
        return model.Absent() if gone else model.Unclear(str(failure))
    except (RpcError, RemoteFault) as failure:
        return model.Unclear(str(failure))
    return model.Serving(facts.namespace)
