"""Both ends of a merge as a command line names them: what it reads, and where the result goes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from ha.conf.configuration import load_configuration
from ha.console.options import configuration
from ha.console.own_certificate import call_under_certificate
from ha.record import dataclass
from ha.security.caller import Role
from hadoop.location import path_of
from spark.ends.hadoop_files import OpenHadoop
from spark.ends.sinks.hadoop import HadoopSink
from spark.ends.sinks.model import DirectorySink, Sink
from spark.ends.sinks.upload import UploadSink
from spark.ends.sources.cluster import Cluster
from spark.ends.sources.directory import DirectorySource
from spark.ends.sources.from_cluster import ClusterSource
from spark.ends.sources.hadoop import HadoopSource
from spark.ends.sources.model import Source

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The options of ``end_options``; ``image``, ``edits`` and ``out`` are paths or URIs."""

    image: str | None = None
    edits: str | None = None
    from_cluster: bool = False
    out: str | None = None
    upload: bool = False
    conf_dir: Path | None = None
    overrides: tuple[str, ...] = ()

    @property
    def need_java(self) -> bool:
        """Whether a Hadoop file system is named, so that a JVM is needed."""
        return any(_is_remote(spec) for spec in (self.image, self.edits, self.out) if spec)


def end_options(command: F) -> F:
    """Add the options that say what is merged and where the result goes.

    Click calls the command with arguments of these names, as ``Ends`` takes them.
    """
    for option in reversed(
        (
            click.option(
                "--image",
                help="fsimage_N with its .md5 beside it, or a directory whose newest is meant; a "
                "path, or a URI that Hadoop's file systems know (hdfs://, s3a://).",
            ),
            click.option(
                "--edits",
                help="A directory with the finalized edits_* behind the image (or with current/ "
                "that has them); a path or a URI.",
            ),
            click.option(
                "--from-cluster",
                is_flag=True,
                help="Take the newest image of the NameNodes and the edits of the JournalNodes.",
            ),
            click.option("--out", help="Directory for fsimage_M and its .md5; a path or a URI."),
            click.option("--upload", is_flag=True, help="Upload the image to the active NameNode."),
            configuration,
        )
    ):
        command = option(command)
    return command


def open_source(ends: Ends, hadoop: OpenHadoop) -> Source:
    """Return where image and edits come from; nothing is read yet.

    Args:
        ends: what the command line says.
        hadoop: gives the bridge to Hadoop's file systems; called only if a URI needs it.

    Raises:
        click.UsageError: if the options do not say it, or contradict each other.
        ConfigurationError: if the cluster's configuration is wanted and not usable.
    """
    if ends.from_cluster:
        if ends.image or ends.edits:
            raise click.UsageError("--from-cluster stands for --image and --edits; give either")
        return ClusterSource(_cluster(ends))
    if not ends.image or not ends.edits:
        raise click.UsageError("give --image and --edits, or --from-cluster")
    if _is_remote(ends.image) or _is_remote(ends.edits):
        return HadoopSource(_as_uri(ends.image), _as_uri(ends.edits), hadoop)
    return DirectorySource(path_of(ends.image), path_of(ends.edits))


def open_sink(ends: Ends, hadoop: OpenHadoop) -> Sink:
    """Return where the result goes; arguments and errors as ``open_source``."""
    if ends.upload == bool(ends.out):
        raise click.UsageError("give one of --out and --upload")
    if not ends.out:
        return UploadSink(_cluster(ends))
    if _is_remote(ends.out):
        return HadoopSink(ends.out, hadoop)
    return DirectorySink(path_of(ends.out))


def _cluster(ends: Ends) -> Cluster:
    configuration = load_configuration(ends.conf_dir, ends.overrides)
    call_under_certificate(configuration, Role.CHECKPOINTER, Role.ADMIN)
    return Cluster.from_configuration(configuration)


def _is_remote(spec: str) -> bool:
    """Return whether the path needs Hadoop's classes; ``file:`` does not."""
    return urlsplit(spec).scheme not in ("", "file")


def _as_uri(spec: str) -> str:
    return spec if _is_remote(spec) else path_of(spec).absolute().as_uri()
