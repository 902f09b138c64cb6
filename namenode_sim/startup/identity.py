"""Where one NameNode stands: its address, its peers, its directories and its journal."""

from pathlib import Path

from ha.conf import topology
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import namenode as keys_namenode
from ha.record import dataclass
from hadoop.location import path_of
from journal.links.configuration import reader_settings, writer_link, writer_settings
from journal.links.grpc_link import GrpcLink
from journal.links.kept_links import KeptLinks
from journal.links.link import LinkFactory
from journal.model import JournalId, NamespaceInfo
from journal.reader.reader import JournalReader
from journal.writer.writer import QuorumWriter
from namenode_sim.image.codecs import compressor
from namenode_sim.image.errors import ImageError
from namenode_sim.storage.local_copies import LocalCopies
from namenode_sim.storage.retention import Retention
from namenode_sim.storage.storage import StorageSettings
from namenode_sim.term.journal_access import JournalAccess, JournalSet


@dataclass(frozen=True, slots=True)
class NameNodeIdentity:
    """One NameNode's place in its nameservice."""

    address: topology.NameNodeAddress
    peers: tuple[topology.NameNodeAddress, ...]
    journal: topology.JournalUri

    @classmethod
    def from_configuration(cls, conf: Configuration) -> "NameNodeIdentity":
        """Find our own place in the configuration.

        Raises:
            ConfigurationError: if it does not say who we are, or where the journal is.
        """
        address = topology.local_namenode(conf)
        everybody = topology.namenodes(conf, address.nameservice)
        peers = tuple(peer for peer in everybody if peer.namenode != address.namenode)
        journal = topology.shared_edits(conf, address.nameservice, address.namenode)
        return cls(address, peers, journal)

    @property
    def journal_nodes(self) -> list[tuple[str, int]]:
        return [(node.host, node.port) for node in self.journal.nodes]


def name_directories(conf: Configuration, address: topology.NameNodeAddress) -> list[Path]:
    """Return the configured name directories, as paths.

    Raises:
        ConfigurationError: if one is not a local directory.
    """
    uris = conf.get(
        keys_namenode.NAME_DIR, nameservice=address.nameservice, namenode=address.namenode
    )
    try:
        return [path_of(uri) for uri in uris]
    except ValueError as problem:
        raise ConfigurationError(f"{keys_namenode.NAME_DIR.name}: {problem}.") from problem


def storage_settings(conf: Configuration) -> StorageSettings:
    """Return what becomes of failed directories and old files, and how images are saved.

    Raises:
        ConfigurationError: if images cannot be compressed as it says.
    """
    codec, parts = "", 0
    if conf.get(keys_namenode.IMAGE_COMPRESS):
        codec = conf.get(keys_namenode.IMAGE_CODEC)
        try:
            compressor(codec)
        except ImageError as problem:
            where = conf.where(keys_namenode.IMAGE_CODEC)
            raise ConfigurationError(f"{where}: {problem}.") from problem
    elif conf.get(keys_namenode.IMAGE_PARALLEL):
        # A compressed image cannot be loaded in parallel, so Hadoop saves it in one part.
        parts = conf.get(keys_namenode.IMAGE_PARALLEL_SECTIONS)
    return StorageSettings(
        codec=codec,
        sub_sections=parts,
        sub_sections_from=conf.get(keys_namenode.IMAGE_PARALLEL_INODES),
        restore_failed=conf.get(keys_namenode.NAME_DIR_RESTORE),
        retention=Retention(
            images=conf.get(keys_namenode.CHECKPOINTS_RETAINED),
            extra_edits=conf.get(keys_namenode.EXTRA_EDITS_RETAINED),
            extra_segments=conf.get(keys_namenode.EXTRA_SEGMENTS_RETAINED),
        ),
    )


def edits_directories(conf: Configuration, address: topology.NameNodeAddress) -> list[Path]:
    """Return where local edits may lie: the name directories, and ``dfs.namenode.edits.dir``.

    Raises:
        ConfigurationError: if one is not a local directory.
    """
    directories = name_directories(conf, address)
    key = keys_namenode.EDITS_DIR
    suffixes = ("", f".{address.nameservice}", f".{address.nameservice}.{address.namenode}")
    if any(conf.raw(key.name + suffix) for suffix in suffixes):
        uris = conf.get(key, nameservice=address.nameservice, namenode=address.namenode)
        try:
            directories += [path_of(uri) for uri in uris]
        except ValueError as problem:
            raise ConfigurationError(f"{key.name}: {problem}.") from problem
    return list(dict.fromkeys(directories))


def copy_directories(conf: Configuration, address: topology.NameNodeAddress) -> list[Path]:
    """Return where an active keeps copies of what it writes: ``dfs.namenode.edits.dir``.

    By default these are the name directories, as in Hadoop.  Raises ConfigurationError.
    """
    names = name_directories(conf, address)
    both = edits_directories(conf, address)
    return both[len(names) :] or names


def checked_volumes(conf: Configuration) -> list[Path]:
    """Return directories whose disks must have room like those of the name directories.

    Raises:
        ConfigurationError: if one is not a local directory.
    """
    key = keys_namenode.RESOURCE_VOLUMES
    try:
        return [path_of(uri) for uri in conf.get(key)]
    except ValueError as problem:
        raise ConfigurationError(f"{key.name}: {problem}.") from problem


def required_directories(conf: Configuration, address: topology.NameNodeAddress) -> list[Path]:
    """Return those without which no active goes on (``dfs.namenode.edits.dir.required``)."""
    key = keys_namenode.EDITS_REQUIRED
    uris = conf.get(key, nameservice=address.nameservice, namenode=address.namenode)
    try:
        # Hadoop lists the shared directory here too; the quorum is always required.
        return [path_of(uri) for uri in uris if not uri.startswith("qjournal:")]
    except ValueError as problem:
        raise ConfigurationError(f"{key.name}: {problem}.") from problem


def journal_writer(
    conf: Configuration,
    place: NameNodeIdentity,
    namespace_info: NamespaceInfo,
    link: LinkFactory | None = None,
) -> QuorumWriter:
    """Return a writer that has not yet asked for an epoch.  Raises ConfigurationError."""
    return QuorumWriter(
        place.journal_nodes,
        journal_id=JournalId(place.journal.journal_id),
        nameservice_id=place.address.nameservice,
        namespace=namespace_info,
        settings=writer_settings(conf),
        link=link or writer_link(conf, place.journal_nodes),
    )


def journal_reader(
    conf: Configuration, place: NameNodeIdentity, namespace_info: NamespaceInfo
) -> JournalReader:
    return JournalReader(
        place.journal_nodes,
        journal_id=JournalId(place.journal.journal_id),
        nameservice_id=place.address.nameservice,
        namespace=namespace_info,
        settings=reader_settings(conf),
    )


def journal_access(
    conf: Configuration, place: NameNodeIdentity, namespace_info: NamespaceInfo, copies: LocalCopies
) -> JournalAccess:
    """Return the journal as the running NameNode uses it."""
    reader = journal_reader(conf, place, namespace_info)
    address = place.address
    in_progress = conf.get(
        keys_namenode.TAIL_IN_PROGRESS, nameservice=address.nameservice, namenode=address.namenode
    )
    over_grpc = writer_link(conf, place.journal_nodes) is GrpcLink
    kept = KeptLinks(place.journal_nodes) if over_grpc else None
    layout = namespace_info.edits_layout
    return JournalAccess(
        lambda: JournalSet(
            journal_writer(conf, place, namespace_info, kept), copies, layout=layout
        ),
        reader,
        layout,
        tails_open_segment=in_progress,
        silence=reader.writer_silence,
        kept=kept,
    )
