"""Hadoop's own FileSystem in a long-lived JVM, driven from here through py4j."""

import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java
from deploy.local.cluster.ports import HOST
from deploy.local.cluster.processes import ManagedProcess, Supervisor
from deploy.local.workload.hadoop_client import client_argv
from ha.record import dataclass

NAME = "java-client"
OVERWRITE = True
ONLY_A_FILE = False
BUFFER = 4096
REPLICATION = 3
GATEWAY_FLAGS = ("--die-on-broken-pipe", "--enable-auth", "0")
"""py4j's server picks a free port and a secret, prints both, and ends when its input does."""

# It logs each failed call with every exception behind it, partly through the root logger; we raise
# them, and report the first line.
logging.getLogger("py4j").setLevel(logging.CRITICAL)
logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)

T = TypeVar("T")

_STATUS = re.compile(r"FileStatus\{path=[a-z]+://[^/]*([^;]*); isDirectory=(true|false)")


class CallFailed(Exception):
    """A call that the Java client gave up on; the message is the Java exception's first line."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Everything below a directory, as absolute paths."""

    directories: frozenset[str]
    files: frozenset[str]


@dataclass(slots=True)
class JavaClient:
    """A JVM with a FileSystem for the cluster's nameservice and the client's default settings.

    Its calls may be made from several threads; they share one FileSystem, as an application's do.
    """

    process: ManagedProcess
    _gateway: Any
    _filesystem: Any = None
    _path: Any = None

    def __enter__(self) -> "JavaClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Read the configuration and make the FileSystem; no NameNode is asked yet.

        Raises LocalClusterError where there is none to read: Hadoop's client would then take this
        host's own files for the cluster's.
        """

        self._filesystem = self._call(self._new_filesystem)
        self._path = self._call(lambda: self._gateway.jvm.org.apache.hadoop.fs.Path)
        uri = str(self._call(lambda: self._filesystem.getUri().toString()))
        if uri.startswith("file:"):
            argv = self.process.argv
            folder = argv[argv.index("-cp") + 1].partition(os.pathsep)[0]
            raise LocalClusterError(
                f"Asked the Java client for its file system; found {uri}, this host's own: "
                f"it has read no fs.defaultFS. Look whether {folder} has a core-site.xml"
            )

    def on_files(self, action: Callable[[Any], T]) -> T:
        """Return what ``action`` does with the Java FileSystem itself.  Raises CallFailed."""
        return self._call(lambda: action(self._filesystem))

    def path(self, path: str) -> Any:  # noqa: ANN401 - py4j has no types
        """Return a path as that FileSystem wants it."""
        return self._path(path)

    def read(self, path: str) -> bytes:
        """Return all of a file.  Raises CallFailed."""
        return JavaFiles(self._filesystem, self._gateway.jvm, self._call).read(path)

    def java_version(self) -> str:
        return str(self._call(lambda: self._gateway.jvm.System.getProperty("java.version")))

    def mkdirs(self, path: str) -> bool:
        """Call FileSystem.mkdirs.  Raises CallFailed."""
        return bool(self._call(lambda: self._filesystem.mkdirs(self._path(path))))

    def create(self, path: str, *, overwrite: bool) -> bool:
        """Call FileSystem.create and close: an empty file.  Raises CallFailed."""
        self._call(lambda: self._filesystem.create(self._path(path), overwrite).close())
        return True

    def rename(self, source: str, target: str) -> bool:
        """Call FileSystem.rename.  Raises CallFailed."""
        rename = self._call(lambda: self._filesystem.rename(self._path(source), self._path(target)))
        return bool(rename)

    def tree(self, root: str) -> Tree:
        """Return everything below ``root``, asked directory by directory.  Raises CallFailed."""
        directories: set[str] = set()
        files: set[str] = set()
        to_visit = [root]
        arrays = self._gateway.jvm.org.apache.commons.lang3.ArrayUtils
        while to_visit:
            path = to_visit.pop()

            def listing(path: str = path) -> str:
                # One string for a whole directory: an object per file would be a call per file.
                return str(arrays.toString(self._filesystem.listStatus(self._path(path))))

            for name, is_directory in _STATUS.findall(self._call(listing)):
                if is_directory == "true":
                    directories.add(name)
                    to_visit.append(name)
                else:
                    files.add(name)
        return Tree(directories=frozenset(directories), files=frozenset(files))

    def files(self) -> "JavaFiles":
        """Make a new FileSystem: a client with a name and leases of its own."""
        return JavaFiles(self._call(self._new_filesystem), self._gateway.jvm, self._call)

    def close(self) -> None:
        """End the JVM; it ends by itself when its standard input does."""
        self._gateway.close()
        self.process.close_pipes()

    def _new_filesystem(self) -> Any:  # noqa: ANN401 - py4j has no types
        jvm = self._gateway.jvm
        conf = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        return jvm.org.apache.hadoop.fs.FileSystem.newInstance(conf)

    def _call(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except Py4JJavaError as failure:
            raise CallFailed(_first_line(failure)) from failure
        except Py4JError as failure:
            raise CallFailed("the Java client has ended") from failure


@dataclass(frozen=True, slots=True)
class JavaFiles:
    """One client's files, with contents.  Every method raises CallFailed."""

    filesystem: Any
    jvm: Any
    call: Callable[[Callable[[], Any]], Any]

    def write(self, path: str, pieces: Sequence[bytes], *, block_size: int) -> None:
        """Create a file; each piece but the last is made visible to readers as it is written."""

        def write() -> None:
            stream = self.filesystem.create(
                self._path(path), OVERWRITE, BUFFER, REPLICATION, block_size
            )
            _write_pieces(stream, pieces)

        self.call(write)

    def append(self, path: str, pieces: Sequence[bytes]) -> None:
        self.call(lambda: _write_pieces(self.filesystem.append(self._path(path)), pieces))

    def read(self, path: str) -> bytes:

        def read() -> bytes:
            stream = self.filesystem.open(self._path(path))
            try:
                return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

        return bytes(self.call(read))

    def sha256(self, path: str) -> str:
        """Return the digest of all that is in a file; its bytes stay in the JVM."""

        def read() -> str:
            java = self.jvm.java.security
            digest = java.MessageDigest.getInstance("SHA-256")
            stream = java.DigestInputStream(self.filesystem.open(self._path(path)), digest)
            try:
                self.jvm.org.apache.commons.io.IOUtils.consume(stream)
            finally:
                stream.close()
            return bytes(digest.digest()).hex()

        return str(self.call(read))

    def rename(self, source: str, target: str) -> bool:
        return bool(
            self.call(lambda: self.filesystem.rename(self._path(source), self._path(target)))
        )

    def delete(self, path: str) -> bool:
        """Call FileSystem.delete for one file."""
        return bool(self.call(lambda: self.filesystem.delete(self._path(path), ONLY_A_FILE)))

    def set_replication(self, path: str, replicas: int) -> bool:
        filesystem = self.filesystem
        return bool(self.call(lambda: filesystem.setReplication(self._path(path), replicas)))

    def is_closed(self, path: str) -> bool:
        return bool(self.call(lambda: self.filesystem.isFileClosed(self._path(path))))

    def recover_lease(self, path: str) -> bool:
        """Take a file from its writer; whether it is closed now."""
        return bool(self.call(lambda: self.filesystem.recoverLease(self._path(path))))

    def _path(self, path: str) -> Any:  # noqa: ANN401 - py4j has no types
        return self.jvm.org.apache.hadoop.fs.Path(path)


def _write_pieces(stream: Any, pieces: Sequence[bytes]) -> None:  # noqa: ANN401 - py4j has no types
    *before, last = pieces
    for piece in before:
        stream.write(piece)
        stream.hflush()
    stream.write(last)
    stream.close()


def _first_line(failure: Any) -> str:  # noqa: ANN401 - py4j has no types
    """Return Java's name of the exception; to ask for it is a call to the JVM, which may fail."""
    try:
        return str(failure.java_exception.toString()).splitlines()[0]
    except Py4JError:
        return "the Java client has ended"


def start_java_client(
    supervisor: Supervisor, *, java: Java, conf_dir: Path, name: str = NAME
) -> ManagedProcess:
    """Start the JVM and do not wait for it; ``open_java_client`` goes on from here.

    The files in ``conf_dir`` may be written until then.
    """
    conf_dir.mkdir(parents=True, exist_ok=True)  # Java drops a folder that it does not find
    argv = client_argv(
        java, conf_dir, "py4j.GatewayServer", log_directory=supervisor.directory / "tmp"
    )
    return supervisor.start(name, [*argv, *GATEWAY_FLAGS], talks=True)


def open_java_client(process: ManagedProcess) -> JavaClient:
    """Connect to the started JVM.  Raises LocalClusterError where it did not come up."""
    client = JavaClient(process=process, _gateway=gateway_of(process))
    try:
        client.connect()
    except BaseException:
        client.close()
        raise
    return client


def gateway_of(process: ManagedProcess) -> JavaGateway:
    """Connect to py4j's server in a process.  Raises LocalClusterError where it did not start."""
    output = process.process.stdout
    port, secret = (output.readline().strip(), output.readline().strip()) if output else (b"", b"")
    if not port.isdigit() or not secret:
        raise LocalClusterError(
            f"Started the Java client; it printed no port. The end of its log {process.log}:\n"
            f"{process.log_tail()}"
        )
    parameters = GatewayParameters(address=HOST, port=int(port), auth_token=secret.decode())
    return JavaGateway(gateway_parameters=parameters)
