"""Any file system that Hadoop's classes know, through the JVM of Spark's driver.

Executors have no such bridge, so files are copied to and from local storage by the driver.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ha.record import dataclass

# Java's arguments have no names.
_KEEP_SOURCE: Final = False
_OVERWRITE: Final = True
_RAW_LOCAL: Final = True
"""Without .crc files next to the copies."""
_NOT_RECURSIVE: Final = False


class HadoopFileError(Exception):
    """Hadoop's file system refused; the message names the URI and has Java's own first line."""


@dataclass(frozen=True, slots=True)
class HadoopFile:
    """One entry of a listing; ``uri`` is absolute."""

    uri: str
    name: str
    length: int
    is_directory: bool


class HadoopFiles:
    """Files by URI: ``hdfs://``, ``s3a://``, ``file://``, whatever Hadoop's configuration names.

    Blocking.  Every method raises HadoopFileError when the file system refuses.
    """

    def __init__(self, jvm: Any, configuration: Any) -> None:  # noqa: ANN401 - py4j's objects
        """Take ``jvm``, py4j's view of a JVM with Hadoop's classes, and a Hadoop Configuration."""
        self._jvm = jvm
        self._configuration = configuration

    @classmethod
    def of_session(cls, session: Any) -> "HadoopFiles":  # noqa: ANN401 - no stubs for pyspark
        """Open them with a SparkSession's configuration (``spark.hadoop.*`` and its own files)."""
        context = session.sparkContext
        return cls(context._jvm, context._jsc.hadoopConfiguration())

    def find(self, uri: str) -> HadoopFile | None:
        """Return what lies there; None if nothing does."""
        with _named(uri):
            path = self._path(uri)
            system = path.getFileSystem(self._configuration)
            return self._file(system.getFileStatus(path)) if system.exists(path) else None

    def list(self, uri: str) -> list[HadoopFile]:
        """Return what lies in a directory, sorted by name."""
        with _named(uri):
            path = self._path(uri)
            found = path.getFileSystem(self._configuration).listStatus(path)
            return sorted((self._file(one) for one in found), key=lambda file: file.name)

    def get(self, uri: str, local: Path) -> None:
        """Copy a file here; a copy that fails leaves nothing."""
        try:
            with _named(uri):
                path = self._path(uri)
                system = path.getFileSystem(self._configuration)
                here = self._path(local.as_uri())
                system.copyToLocalFile(_KEEP_SOURCE, path, here, _RAW_LOCAL)
        except HadoopFileError:
            local.unlink(missing_ok=True)
            raise

    def put(self, local: Path, uri: str) -> None:
        """Copy a file there, in place of what may lie there; whole when this returns."""
        with _named(uri):
            path = self._path(uri)
            system = path.getFileSystem(self._configuration)
            here = self._path(local.as_uri())
            system.copyFromLocalFile(_KEEP_SOURCE, _OVERWRITE, here, path)
            length = int(system.getFileStatus(path).getLen())
        if length != local.stat().st_size:
            raise HadoopFileError(f"{uri} has {length} bytes, and {local} {local.stat().st_size}")

    def rename(self, old: str, new: str) -> None:
        """Rename within one file system; nothing may lie at ``new``."""
        with _named(new):
            path = self._path(old)
            done = path.getFileSystem(self._configuration).rename(path, self._path(new))
        if not done:
            raise HadoopFileError(f"{old} could not be renamed to {new}; does that exist?")

    def make_directory(self, uri: str) -> None:
        """Create a directory and those above it, unless they exist."""
        with _named(uri):
            path = self._path(uri)
            path.getFileSystem(self._configuration).mkdirs(path)

    def delete(self, uri: str) -> None:
        """Delete a file, if there is one."""
        with _named(uri):
            path = self._path(uri)
            path.getFileSystem(self._configuration).delete(path, _NOT_RECURSIVE)

    def _path(self, uri: str) -> Any:  # noqa: ANN401 - py4j's objects
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    def _file(self, status: Any) -> HadoopFile:  # noqa: ANN401 - py4j's objects
        path = status.getPath()
        return HadoopFile(
            str(path.toString()),
            str(path.getName()),
            int(status.getLen()),
            bool(status.isDirectory()),
        )


OpenHadoop = Callable[[], HadoopFiles]
"""Gives the bridge when it is needed first: it may start a JVM."""


@contextmanager
def _named(uri: str) -> Iterator[None]:
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError as failure:
        first_line = str(failure.java_exception.toString()).partition("\n")[0]
        raise HadoopFileError(f"{uri}: {first_line}") from failure
    except Py4JError as failure:
        raise HadoopFileError(f"{uri}: the JVM does not answer: {failure}") from failure
