"""Settings that nnha does not support and that are unsafe to ignore: daemons do not start."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final

from ha.conf.configuration import Configuration, nodes_of
from ha.conf.errors import ConfigurationError
from ha.conf.keys import security as keys
from ha.conf.keys.kerberos import SASL_RESOLVER
from ha.conf.keys.key import Key
from ha.record import dataclass


class Daemon(StrEnum):
    """The processes that run for long, by the name in their logs."""

    NAMENODE = "namenode"
    DATANODE = "datanode"
    JOURNALNODE = "journalnode"
    ZKFC = "zkfc"
    CHECKPOINT = "checkpoint"
    WEB = "web"


EVERY_DAEMON: Final = frozenset(Daemon)
_SERVERS: Final = frozenset({Daemon.NAMENODE, Daemon.DATANODE, Daemon.JOURNALNODE})
_NAMENODE: Final = frozenset({Daemon.NAMENODE})
_BLOCKS: Final = frozenset({Daemon.NAMENODE, Daemon.DATANODE})


@dataclass(frozen=True, slots=True)
class Hazard:
    """A key that must not be ignored, as that would open, or lose, what it protects.

    ``asked`` decides from the typed value whether the protection is wanted.  ``meaning`` says what
    a daemon that went on would do, ``advice`` how to go on.
    """

    key: Key[Any]
    asked: Callable[[Any], bool]
    daemons: frozenset[Daemon]
    meaning: str
    advice: str


def _neither_simple_nor_kerberos(found: str) -> bool:
    return found.lower() not in ("simple", "kerberos")


def _not_of_this_machine(mapping: str) -> bool:
    """Return whether groups come from elsewhere than the operating system, which nnha asks."""
    return not mapping.endswith(("UnixGroupsMapping", "UnixGroupsMappingWithFallback"))


HAZARDS: Final = (
    Hazard(
        keys.AUTHENTICATION,
        _neither_simple_nor_kerberos,
        EVERY_DAEMON,
        "nnha knows simple and kerberos: it would accept any user name that a caller gives",
        "Set it to simple or kerberos for nnha's daemons",
    ),
    Hazard(
        SASL_RESOLVER,
        bool,
        EVERY_DAEMON,
        "nnha runs no Java class: each connection would have the protection of "
        "hadoop.rpc.protection alone",
        "Say in hadoop.rpc.protection what protects all connections, and unset this for nnha's "
        "daemons",
    ),
    Hazard(
        keys.HTTP_AUTHENTICATION,
        _neither_simple_nor_kerberos,
        _SERVERS,
        "nnha runs no Java class: its pages would not ask for what that class asks",
        "Set it to simple or kerberos for these daemons; docs/kerberos.md says what each means",
    ),
    Hazard(
        keys.HTTP_POLICY,
        keys.https_only,
        _BLOCKS,
        "of nnha's daemons a JournalNode alone serves HTTPS: images would travel in the clear",
        "Keep these connections on a network that you trust, or give all of nnha's daemons "
        "certificates (nnha.security.tls.dir), and set it to HTTP_ONLY for them, JournalNodes too",
    ),
    Hazard(
        keys.KEY_PROVIDER,
        bool,
        _NAMENODE,
        "nnha's NameNode knows no encryption zones: new files in them would not be encrypted",
        "Keep a file system with encryption zones on Hadoop's NameNode; without any, set an "
        "empty value for nnha's",
    ),
    Hazard(
        keys.GROUP_MAPPING,
        _not_of_this_machine,
        _NAMENODE,
        "nnha's NameNode asks its own machine for the groups of a user: it would use other groups "
        "than those that you configure",
        "Make the groups known to the NameNode's machine (nsswitch.conf), and give it the default",
    ),
    Hazard(
        keys.RESOLVE_JOURNAL_NODES,
        bool,
        EVERY_DAEMON,
        "nnha takes each host in dfs.namenode.shared.edits.dir for one JournalNode: it would count "
        "another majority than you expect",
        "Name every JournalNode in dfs.namenode.shared.edits.dir, and set this to false",
    ),
)


@dataclass(frozen=True, slots=True)
class Danger:
    """A hazard that a configuration asks for, and where."""

    hazard: Hazard
    where: str
    value: object

    def told(self, who: str) -> str:
        """Describe what is set where, what it would mean to go on, and what to do."""
        value = "true" if self.value is True else self.value
        return (
            f"{self.where} is {value}, but {self.hazard.meaning}. {who}. {self.hazard.advice} (in "
            f"their configuration, or with -D {self.hazard.key.name}=...)."
        )


def dangers(configuration: Configuration) -> Iterator[Danger]:
    """Yield the hazards that the configuration asks for, for itself or for one of its NameNodes.

    Raises ``ConfigurationError`` for a value that cannot be read.
    """
    nodes = nodes_of(configuration)
    scopes = [(None, None), *((name, one) for name, all_ in nodes.items() for one in all_)]
    for hazard in HAZARDS:
        seen = set()
        for nameservice, namenode in scopes:
            place = {"nameservice": nameservice, "namenode": namenode}
            value = configuration.get(hazard.key, **place)
            where = configuration.where(hazard.key, **place)
            if where not in seen and hazard.asked(value):
                yield Danger(hazard, where, value)
            seen.add(where)


def refuse_dangers(configuration: Configuration, daemon: Daemon) -> None:
    """Raise ``ConfigurationError`` if a daemon must not start with this configuration."""
    for danger in dangers(configuration):
        if daemon in danger.hazard.daemons:
            raise ConfigurationError(danger.told(f"The {daemon} does not start"))
