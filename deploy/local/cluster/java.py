"""Java for the local cluster, with the cluster's own error where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager

from deploy.local.cluster.errors import LocalClusterError
from ha.daemon import java
from ha.daemon.java import Java as Java  # the cluster's parts know Java from here
from ha.daemon.java import quick_start_flags as quick_start_flags


@contextmanager
def _as_cluster_error() -> Iterator[None]:
    try:
        yield
    except java.JavaMissing as problem:
        raise LocalClusterError(str(problem)) from problem


find_java = _as_cluster_error()(java.find_java)
find_jars = _as_cluster_error()(java.find_jars)
class_path = _as_cluster_error()(java.class_path)
"""These three raise LocalClusterError, and do what those of `ha.daemon.java` do."""
