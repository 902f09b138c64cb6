"""Java for the local cluster, with the cluster's own error where there is none."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deploy.local.cluster.errors import LocalClusterError
from ha.daemon import java
from ha.daemon.java import Java as Java  # the cluster's parts know Java from here
from ha.daemon.java import quick_start_flags as quick_start_flags


def find_java(
    environ: Mapping[str, str] | None = None, *, wrapper_directory: Path | None = None
) -> Java:
    """See `ha.daemon.java.find_java`; raises LocalClusterError."""
    with _as_cluster_error():
        return java.find_java(environ, wrapper_directory=wrapper_directory)


def find_jars() -> Path:
    """See `ha.daemon.java.find_jars`; raises LocalClusterError."""
    with _as_cluster_error():
        return java.find_jars()


def class_path(*patterns: str, first: Path | None = None) -> str:
    """See `ha.daemon.java.class_path`; raises LocalClusterError."""
    with _as_cluster_error():
        return java.class_path(*patterns, first=first)


@contextmanager
def _as_cluster_error() -> Iterator[None]:
    try:
        yield
    except java.JavaMissing as problem:
        raise LocalClusterError(str(problem)) from problem
