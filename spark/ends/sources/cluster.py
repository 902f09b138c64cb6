"""One HA cluster as a merge sees it: its NameNodes and JournalNodes, and what they report."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from ha.conf.configuration import Configuration
from ha.conf.keys import namenode as keys_namenode
from ha.conf.topology import JournalUri, NameNodeAddress, namenodes, nameservice_of, shared_edits
from ha.record import dataclass
from ha.rpc.errors import RemoteFault, RpcError
from ha.service.client import ServiceClient
from ha.service.errors import ServiceError
from ha.service.model import ServiceState
from journal.errors import JournalError
from journal.links.configuration import reader_settings
from journal.model import JournalId, NamespaceInfo, TxId
from journal.reader.reader import JournalReader, ReaderSettings
from namenode_sim.transfer.namenode_protocol import Facts, ask_facts
from spark.ends.sources.model import SourceError

ASK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where to ask.

    Args:
        nameservice: its name.
        namenodes: all NameNodes, in the configured order.
        journal: the shared edits.
        reader: deadlines towards JournalNodes.
        stall_seconds: how long an image's transfer may stand still.
        bytes_per_second: how fast an image is sent; 0 is no limit.
    """

    nameservice: str
    namenodes: tuple[NameNodeAddress, ...]
    journal: JournalUri
    reader: ReaderSettings
    stall_seconds: float
    bytes_per_second: int

    @classmethod
    def from_configuration(cls, conf: Configuration) -> "Cluster":
        """Read the cluster from core-site.xml and hdfs-site.xml.

        Raises:
            ConfigurationError: if they do not say where the NameNodes and JournalNodes are.
        """
        nameservice = nameservice_of(conf)
        everybody = namenodes(conf, nameservice)
        return cls(
            nameservice,
            everybody,
            # Every NameNode of a nameservice has the same shared edits, so any one will do.
            shared_edits(conf, nameservice, everybody[0].namenode),
            reader_settings(conf),
            conf.get(keys_namenode.IMAGE_TRANSFER_TIMEOUT),
            conf.get(keys_namenode.IMAGE_TRANSFER_BANDWIDTH),
        )

    @asynccontextmanager
    async def open_journal(self, namespace: NamespaceInfo) -> AsyncIterator[JournalReader]:
        """Yield a reader that refuses the JournalNodes of another file system.

        Raises:
            SourceError: in place of every error of the journal inside the block.
        """
        reader = JournalReader(
            [(node.host, node.port) for node in self.journal.nodes],
            journal_id=JournalId(self.journal.journal_id),
            nameservice_id=self.nameservice,
            namespace=namespace,
            settings=self.reader,
        )
        try:
            yield reader
        except JournalError as failure:
            raise SourceError(f"the journal {self.journal.journal_id}: {failure}") from failure
        finally:
            await reader.close()


@dataclass(frozen=True, slots=True)
class View:
    """What those NameNodes say that answer; ``silent`` has the others and why.

    ``active`` is the one that calls itself so; None if none does.
    """

    facts: Mapping[str, Facts]
    silent: Mapping[str, str]
    active: str | None

    @property
    def namespace(self) -> NamespaceInfo:
        return next(iter(self.facts.values())).namespace

    @property
    def image_txid(self) -> TxId:
        """The newest image that any NameNode has."""
        return max(facts.image_txid for facts in self.facts.values())

    @property
    def active_image_txid(self) -> TxId:
        """The active's newest image, or any NameNode's if none is active."""
        facts = None if self.active is None else self.facts.get(self.active)
        return self.image_txid if facts is None else facts.image_txid

    @property
    def last_txid(self) -> TxId:
        """The last durable edit that any NameNode knows of."""
        return max(facts.last_txid for facts in self.facts.values())

    def holders(self, cluster: Cluster) -> list[NameNodeAddress]:
        """Return the NameNodes that have the newest image, in the configured order."""
        newest = self.image_txid
        return [
            one
            for one in cluster.namenodes
            if one.namenode in self.facts and self.facts[one.namenode].image_txid == newest
        ]


async def view(cluster: Cluster) -> View:
    """Ask all NameNodes at once.

    Raises:
        SourceError: if none answers, or two belong to different file systems.
    """
    answers = await asyncio.gather(*(_facts_of(one) for one in cluster.namenodes))
    active = await asyncio.gather(*(_is_active(one) for one in cluster.namenodes))
    names = [one.namenode for one in cluster.namenodes]
    named = dict(zip(names, answers, strict=True))
    facts = {name: told for name, told in named.items() if isinstance(told, Facts)}
    silent = {name: told for name, told in named.items() if isinstance(told, str)}
    if not facts:
        told = "; ".join(f"{name}: {why}" for name, why in silent.items())
        raise SourceError(f"no NameNode of {cluster.nameservice} answers; start one. {told}")
    owners = {(f.namespace.namespace_id, f.namespace.cluster_id) for f in facts.values()}
    if len(owners) > 1:
        told = ", ".join(f"{name}: {f.namespace.storage_info()}" for name, f in facts.items())
        raise SourceError(
            f"the NameNodes of {cluster.nameservice} belong to different file systems ({told}); "
            "correct the addresses, or bootstrap the wrong one"
        )
    actives = [name for name, yes in zip(names, active, strict=True) if yes and name in facts]
    return View(facts, silent, actives[0] if actives else None)


async def _facts_of(one: NameNodeAddress) -> Facts | str:
    try:
        return await ask_facts(one.rpc, deadline_seconds=ASK_SECONDS)
    except (RpcError, RemoteFault) as failure:
        return f"{one.rpc}: {failure}"


async def _is_active(one: NameNodeAddress) -> bool:
    try:
        client = await ServiceClient.open(one.service, deadline_seconds=ASK_SECONDS)
        try:
            status = await client.status(deadline_seconds=ASK_SECONDS)
        finally:
            await client.close()
    except ServiceError:
        return False
    return status.state is ServiceState.ACTIVE
