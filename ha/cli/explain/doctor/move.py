"""Checks of ``nnha doctor`` before a cluster of Hadoop's NameNodes moves to nnha, and on the way.

See docs/migration.md.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping

from ha.cluster.check_result import Finding, fail, ok, warn
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import journal as keys_journal
from ha.conf.keys import security as keys_security
from ha.conf.topology import HostPort, namenodes, shared_edits
from ha.daemon.http.http_get import http_get
from ha.record import dataclass, field

PAGE = "docs/migration.md"
_BEANS = ("NameNodeInfo", "NameNodeStatus")
_MOST_BYTES = 64 * 1024 * 1024
"""The bean of a NameNode names each DataNode, with half a kilobyte for one."""
_LAGGING = ("will re-join", "out of sync")
"""What Hadoop's writer says of a JournalNode that it has given up until the next segment."""


@dataclass(frozen=True, slots=True)
class NameNodeFacts:
    """What a NameNode reports over HTTP; both are empty where it does not answer."""

    status: Mapping[str, object] = field(default_factory=dict)
    """Of nnha's: its ``/status``."""
    beans: Mapping[str, object] = field(default_factory=dict)
    """Of Hadoop's: the attributes of its beans."""

    @property
    def hadoop_version(self) -> str:
        """Hadoop's version; empty for a NameNode of nnha, or if none is reported."""
        version = str(self.beans.get("SoftwareVersion") or "")
        return "" if version.startswith("nnha") else version


async def ask_namenodes(
    configuration: Configuration, nameservice: str, *, seconds: float
) -> dict[str, NameNodeFacts]:
    """Return the facts of each NameNode, by its id."""
    nodes = namenodes(configuration, nameservice)
    found = await asyncio.gather(*(_ask(node.http, seconds) for node in nodes))
    return {node.namenode: facts for node, facts in zip(nodes, found, strict=True)}


async def _ask(address: HostPort, seconds: float) -> NameNodeFacts:
    if status := await _object(address, "/status", seconds):
        return NameNodeFacts(status=status)
    beans: dict[str, object] = {}
    for name in _BEANS:
        query = f"/jmx?qry=Hadoop:service=NameNode,name={name}"
        told = (await _object(address, query, seconds)).get("beans")
        for bean in told if isinstance(told, list) else ():
            beans |= bean if isinstance(bean, dict) else {}
    return NameNodeFacts(beans=beans)


async def _object(address: HostPort, target: str, seconds: float) -> dict[str, object]:
    """Fetch the JSON object at a path; return an empty one if there is none."""
    try:
        answer = await http_get(address, target, most_bytes=_MOST_BYTES, deadline_seconds=seconds)
        found = json.loads(answer.body) if answer.status == 200 else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def check_move(
    configuration: Configuration, nameservice: str, namenodes: Mapping[str, NameNodeFacts]
) -> Iterator[Finding]:
    """Report what stands in the way of a move; yield nothing for a cluster that is nnha's."""
    hadoops = {name: facts for name, facts in namenodes.items() if facts.hadoop_version}
    if not hadoops:
        return
    yield from _journal_addresses(configuration, nameservice)
    for name, facts in hadoops.items():
        yield from _namenode(configuration, name, facts)


def _namenode(configuration: Configuration, name: str, facts: NameNodeFacts) -> Iterator[Finding]:
    check, beans = f"move of {name}", facts.beans
    problems = list(_problems(configuration, beans))
    for found, then in problems:
        yield fail(check, found, then)
    journal = str(beans.get("NameJournalStatus") or "")
    if any(word in journal for word in _LAGGING):
        found = "it has given up a JournalNode until the next segment"
        yield warn(check, found, "hdfs dfsadmin -rollEdits, before you stop a JournalNode")
    if problems:
        return
    yield ok(check, f"Hadoop {facts.hadoop_version}: its daemons can be moved ({PAGE})")


def _problems(
    configuration: Configuration, beans: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    key, demanded = keys_security.AUTHENTICATION, "kerberos"
    if beans.get("SecurityEnabled") is True and configuration.get(key).lower() != demanded:
        found = f"it demands Kerberos, and {key.name} is {configuration.get(key)} here"
        yield found, f"{key.name}={demanded}, with the principals: docs/kerberos.md"
    if beans.get("RollingUpgradeStatus"):
        yield "a rolling upgrade is under way", "hdfs dfsadmin -rollingUpgrade finalize"
    if beans.get("UpgradeFinalized") is False:
        yield "an upgrade is not finalized", "hdfs dfsadmin -finalizeUpgrade"
    if beans.get("Safemode"):
        yield "it is in safe mode", "wait until it leaves it: hdfs dfsadmin -safemode get"


def _journal_addresses(configuration: Configuration, nameservice: str) -> Iterator[Finding]:
    check, key = "move of the journal", keys_journal.HADOOP_RPC
    listen = configuration.get(key)
    if listen is None:
        yield fail(
            check,
            f"{key.name} is not set: Hadoop's NameNodes could not reach nnha's JournalNodes",
            f"set it to the port that Hadoop's JournalNodes have now: {PAGE}",
        )
        return
    try:
        nodes = shared_edits(configuration, nameservice).nodes
    except ConfigurationError:
        return  # reported by other checks
    if any(node.port == listen.port for node in nodes):
        yield fail(
            check,
            f"dfs.namenode.shared.edits.dir names port {listen.port}, which is also that of "
            f"{key.name}: nnha's commands and NameNodes would speak gRPC to it",
            f"in nnha's configuration folder name the gRPC ports: {PAGE}",
        )
