"""Load an fsimage into a namespace (docs/reference/formats.md#image-file)."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from namenode_sim.image import admin_sections, snapshots_reader
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest
from namenode_sim.image.inodes_reader import link_children, read_inodes
from namenode_sim.image.load_progress import LoadProgress
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import ImageSections
from namenode_sim.image.strings import Strings, read_strings
from namenode_sim.image.unknown import Kept, keep_unknown
from namenode_sim.namespace.inode import ROOT_ID, INodeDirectory, INodeFile
from namenode_sim.namespace.inode_map import InodeMap
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import is_current

log = structlog.get_logger()

_NAME = re.compile(r"fsimage(?:_rollback)?_(\d+)")
_MANY_INODES: Final = 100_000


def load_image(path: Path, progress: LoadProgress | None = None) -> Namespace:
    """Check an image against its digest and load it.

    Raises:
        LoadAbandoned: if ``progress`` was abandoned in the meantime.
        ImageError: if the digest is missing or differs, or the image cannot be understood;
            names the file.
        OSError: if it cannot be read.
    """
    progress = progress or LoadProgress()
    check_digest(path, progress.digesting)
    with progress.loading(path) as file:
        try:
            namespace = read_namespace(file)
        except ImageError as problem:
            raise ImageError(
                f"{path} cannot be loaded: {problem}. Take another copy of this image, or load it "
                "with the Hadoop version that wrote it."
            ) from problem
    match = _NAME.fullmatch(path.name)
    if match is not None and int(match[1]) != namespace.last_applied:
        # Hadoop does not compare the two, and images with other names are in use (Dynamometer's
        # are); replay goes on from what the image says, and a gap would be noticed there.
        log.warning("image.name_differs", path=str(path), last_applied=namespace.last_applied)
    return namespace


def read_namespace(file: BinaryIO) -> Namespace:
    """Read the namespace of an image, without looking at a digest.

    Raises:
        ImageError: if it is not a sound image; the message does not name the file.
    """
    sections = ImageSections(file)
    with _no_collection():
        namespace = _Loader(sections).load()
        if len(namespace.tree.inodes) >= _MANY_INODES:
            # They live as long as the process: the collector need not look at them ever again.
            gc.freeze()
    return namespace


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the garbage collector off: millions of objects come and none goes."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Loader:
    """One pass over an image: the sections in Hadoop's load order, wherever they lie."""

    def __init__(self, sections: ImageSections) -> None:
        self._sections = sections
        self._section = sections.open

    def load(self) -> Namespace:
        for name in ("NS_INFO", "STRING_TABLE", "INODE"):
            if name not in self._sections:
                raise ImageError(f"it has no section {name}")
        kept: Kept = {}
        summary = self._sections.summary.raw
        keep_unknown(kept, ("SUMMARY", ""), summary, pb.FileSummary.FromString(summary))
        with self._section("STRING_TABLE") as section:
            strings = read_strings(section, kept)
        with self._section("INODE") as section:
            last_inode_id, inodes = read_inodes(section, strings, kept, self._sections.place)
        namespace = Namespace(_root(inodes))
        namespace.unknown_fields = kept
        namespace.tree.inodes = inodes
        namespace.counters.last_inode_id = last_inode_id
        with self._section("NS_INFO") as section:
            admin_sections.read_ns_info(section, namespace)
        if "ERASURE_CODING" in self._sections:
            with self._section("ERASURE_CODING") as section:
                admin_sections.read_erasure_coding(section, namespace)
        self._load_links(namespace, strings)
        for name, read in (
            ("SECRET_MANAGER", admin_sections.read_secrets),
            ("CACHE_MANAGER", admin_sections.read_cache),
        ):
            if name in self._sections:
                with self._section(name) as section:
                    read(section, namespace)
        with self._section("FILES_UNDERCONSTRUCTION") as section:
            for raw in section:  # leases come from the inodes, as in Hadoop since 2.8
                entry = pb.FileUnderConstructionEntry.FromString(raw)
                keep_unknown(kept, ("FILES_UNDERCONSTRUCTION", entry.inodeId), raw, entry)
        for inode in inodes.values():
            if type(inode) is INodeFile and inode.under_construction is not None:
                self._add_lease(namespace, inode)
        return namespace

    def _add_lease(self, namespace: Namespace, file: INodeFile) -> None:
        """Add the lease of an open file, unless only snapshots have it: then it has no writer."""
        if not namespace.tree.has_snapshots or is_current(file):
            namespace.tree.add_lease(file)

    def _load_links(self, namespace: Namespace, strings: Strings) -> None:
        """Load directories' children, snapshots and the references between them."""
        inodes, kept = namespace.tree.inodes, namespace.unknown_fields
        with self._section("INODE_REFERENCE") as section:
            places = snapshots_reader.read_references(section, inodes, kept)
        if "SNAPSHOT" in self._sections:
            with self._section("SNAPSHOT") as section:
                namespace.snapshots = snapshots_reader.read_snapshots(
                    section, inodes, strings, kept
                )
        with self._section("INODE_DIR") as section:
            link_children(section, inodes, places, kept)
        with self._section("SNAPSHOT_DIFF") as section:
            diffs = snapshots_reader.read_diffs(
                section, inodes, namespace.snapshots, places, strings, kept
            )
        if places or diffs or namespace.snapshots.count():
            namespace.tree.has_snapshots = True
            snapshots_reader.settle(inodes, places)


def _root(inodes: InodeMap) -> INodeDirectory:
    """Return the root: of a fixed id today, of another in very old images, but without name."""
    usual = inodes.get(ROOT_ID)
    if isinstance(usual, INodeDirectory):
        return usual
    for inode in inodes.values():
        if isinstance(inode, INodeDirectory) and not inode.name:
            return inode
    raise ImageError("it has no root directory")
