"""Hadoop's own NameNode on the images of the checkpoint bench: load, replay, save."""

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from journal.model import NamespaceInfo
from namenode_sim.image.files import digest_path
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import running_hadoop
from tests.worlds.large.images import LAYOUT, NAMESPACE_ID
from tests.worlds.name_dirs import format_name_dirs

_INFO: Final = NamespaceInfo(LAYOUT, NAMESPACE_ID, "CID-bench", 0, "BP-1-127.0.0.1-2")
HEAP_MEGABYTES: Final = 6000


_WORDS: Final = (
    ("load", re.compile(r"Loaded FSImage in (\d+) seconds")),
    ("save", re.compile(r"bytes saved in (\d+) seconds")),
)


@dataclass(frozen=True, slots=True)
class HadoopRun:
    """How long all of it took, and what its log says of its parts."""

    seconds: float
    told: str


def _told(log: Path) -> str:
    text = log.read_text("utf-8", "replace")
    found = [(name, words.findall(text)) for name, words in _WORDS]
    return ", ".join(f"{name} {seconds[-1]} s" for name, seconds in found if seconds)


def run_hadoop(image: Path, edits: Path, folder: Path) -> HadoopRun:
    """Start a NameNode on the image and its edits, and save its image.

    The JVM runs already; Hadoop's jars must be at hand (NNHA_INTEROP=1).

    Raises:
        JarsMissing, LocalClusterError: Hadoop's jars or a Java are not here.
    """
    name_dir = folder / "name"
    folder.mkdir()
    try:
        format_name_dirs([name_dir], _INFO, Namespace.empty("hdfs"))
        current = name_dir / "current"
        for old in current.glob("fsimage_*"):
            old.unlink()
        for path in (image, digest_path(image), *edits.glob("edits_*")):
            shutil.copy(path, current / path.name)
        with running_hadoop(folder, heap_megabytes=HEAP_MEGABYTES) as hadoop:
            began = time.monotonic()
            hadoop.save_again(name_dir)
            return HadoopRun(time.monotonic() - began, _told(folder / "hadoop.log"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
