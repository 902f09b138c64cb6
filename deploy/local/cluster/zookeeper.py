"""A real ZooKeeper 3.9 of our own on loopback, from PySpark's jars.

See docs/reference/operations.md#embedded-parts.
"""

import socket
from pathlib import Path

from deploy.local.cluster.java import Java, class_path
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import ManagedProcess, Supervisor, wait_until
from ha.record import dataclass

START_SECONDS = 60.0

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JARS = (
    "zookeeper-3*.jar",
    "zookeeper-jute-*.jar",
    "netty-*.jar",
    "slf4j-api-*.jar",
    "log4j-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
)
# The smallest and quickest to start of those measured: 66 MB, 0.34 s.
_FLAGS = (
    "-Xmx64m",
    "-Xms16m",
    "-Xss256k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=32m",
    "-Dzookeeper.admin.enableServer=false",
    "-Dlog4j2.formatMsgNoLookups=true",
)
_FOUR_LETTER_SECONDS = 1.0

_CONFIGURATION = """\
dataDir={data}
clientPort={port}
clientPortAddress={host}
tickTime=500
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok,mntr
maxClientCnxns=0
"""

LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{ISO8601}} %-5p %c{{1}} - %m%n
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
"""
"""log4j2's settings for our JVMs; ``level`` is one of log4j's names."""


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """A started server: ``connect`` is what clients need, ``process`` may be killed or frozen."""

    host: str
    port: int
    process: ManagedProcess

    @property
    def connect(self) -> str:
        """The connect string, ``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid


def start_zookeeper(
    supervisor: Supervisor, *, java: Java, port: int, name: str = "zookeeper"
) -> ZooKeeper:
    """Start it with its data under the supervisor's directory; ``wait_for`` it before use."""
    directory = supervisor.directory / "data" / name
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    configuration = directory / "zoo.cfg"
    configuration.write_text(_CONFIGURATION.format(data=data.resolve(), port=port, host=HOST))
    process = supervisor.start(name, server_argv(java, configuration))
    return ZooKeeper(host=HOST, port=port, process=process)


def server_argv(java: Java, configuration: Path, *flags: str) -> list[str]:
    """Return a server's command line; its log settings lie next to its configuration.

    Later flags win, so ``flags`` may ask for a larger heap than a lone server needs.
    """
    logging = configuration.with_name("log4j2.properties")
    logging.write_text(LOG4J2.format(level="info"))
    return [
        str(java.executable),
        *_FLAGS,
        *flags,
        f"-Dlog4j2.configurationFile={logging.resolve()}",
        "-cp",
        class_path(*_JARS),
        _MAIN_CLASS,
        str(configuration.resolve()),
    ]


def wait_for_zookeeper(server: ZooKeeper, *, deadline_seconds: float = START_SECONDS) -> None:
    """Wait until it answers ``ruok`` and then ``srvr`` with a mode, that is, serves sessions."""
    wait_until(
        lambda: four_letters(server.host, server.port, "ruok") == "imok",
        what=f"ZooKeeper on {server.connect} to answer imok",
        deadline_seconds=deadline_seconds,
        abandon=server.process.ended_early,
    )
    # imok only says that the process runs; a session opened in that instant may hang for 4 s.
    wait_until(
        lambda: "Mode: " in four_letters(server.host, server.port, "srvr"),
        what=f"ZooKeeper on {server.connect} to serve",
        deadline_seconds=deadline_seconds,
        abandon=server.process.ended_early,
    )


def four_letters(host: str, port: int, word: str) -> str:
    """Return ZooKeeper's answer to a four-letter word; empty without an answer in time."""
    answer = b""
    try:
        with socket.create_connection((host, port), _FOUR_LETTER_SECONDS) as connection:
            connection.settimeout(_FOUR_LETTER_SECONDS)
            connection.sendall(word.encode())
            while chunk := connection.recv(4096):
                answer += chunk
    except OSError:
        return ""
    return answer.decode(errors="replace")
