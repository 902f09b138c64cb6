"""Save a namespace as an fsimage (docs/reference/formats.md#image-file)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from hadoop.durable import rename_durably
from journal.model import NamespaceInfo
from namenode_sim.image import admin_sections, inodes_writer, snapshots_writer
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import unfinished_name, write_digest
from namenode_sim.image.strings import StringNumbers, write_strings
from namenode_sim.image.unknown import restore_unknown
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace

_BUFFER_BYTES: Final = 1024 * 1024


def save_image(
    namespace: Namespace,
    path: Path,
    info: NamespaceInfo,
    *,
    codec: str = "",
    sub_sections: int = 0,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Save a namespace; when this returns the image and its digest are on the disk.

    The order is Hadoop's: ``fsimage.ckpt_N`` whole and synced, then the digest, then the name. A
    crash in between leaves a file that is never taken for an image.

    Args:
        namespace: what to save; must not change until this returns.
        path: ``fsimage_N`` in a name directory; N should be ``namespace.last_applied``.
        info: layout version and namespace id to write.
        codec: Hadoop's class name of a compression codec; none if empty.
        sub_sections: about how many parts a large section is to have for loading in parallel, 0
            for none (dfs.image.parallel.target.sections); Hadoop before 3.3.1 cannot read an
            image that has them.
        check: called every few thousand inodes; what it raises ends the saving.

    Raises:
        ImageError: if the namespace does not fit into an image of that layout.
        OSError: if the disk refuses.
    """
    checkpoint = path.with_name(unfinished_name(namespace.last_applied))
    try:
        with checkpoint.open("wb", buffering=_BUFFER_BYTES) as file:
            try:
                digest = write_namespace(
                    namespace,
                    file,
                    info,
                    codec=codec,
                    sub_sections=sub_sections,
                    check=check,
                )
            except ValueError as problem:
                # A number or text that protobuf does not take; nothing of it may be lost quietly.
                raise ImageError(f"{path} cannot be saved: {problem}") from problem
            file.flush()
            os.fsync(file.fileno())
        write_digest(path, digest)
        rename_durably(checkpoint, path)
    except BaseException:
        checkpoint.unlink(missing_ok=True)
        raise


def write_namespace(
    namespace: Namespace,
    file: BinaryIO,
    info: NamespaceInfo,
    *,
    codec: str = "",
    sub_sections: int = 0,
    check: Callable[[], None] = lambda: None,
) -> str:
    """Write an image into an open file; returns its MD5 digest in hex."""
    layout, kept = info.layout_version, namespace.unknown_fields
    numbers = StringNumbers(layout)
    references = inodes_writer.ReferenceNumbers(wanted=namespace.tree.has_snapshots)
    writer = ImageWriter(file, layout=layout, codec=codec, check=check)
    restore_unknown(kept, ("SUMMARY", ""), writer.summary)
    with writer.section("NS_INFO") as write:
        admin_sections.write_ns_info(write, namespace, info.namespace_id, layout)
    if layout <= inodes_writer.ERASURE_CODING_LAYOUT:
        with writer.section("ERASURE_CODING") as write:
            admin_sections.write_erasure_coding(write, namespace)
    _write_tree(writer, namespace, numbers, references, layout, sub_sections)
    with writer.section("INODE_REFERENCE") as write:
        snapshots_writer.write_references(write, references, kept)
    with writer.section("SECRET_MANAGER") as write:
        admin_sections.write_secrets(write, namespace)
    with writer.section("CACHE_MANAGER") as write:
        admin_sections.write_cache(write, namespace)
    with writer.section("STRING_TABLE") as write:
        write_strings(write, numbers, kept)
    return writer.finish()


def _write_tree(
    writer: ImageWriter,
    namespace: Namespace,
    numbers: StringNumbers,
    references: inodes_writer.ReferenceNumbers,
    layout: int,
    sub_sections: int,
) -> None:
    """Write INODE, INODE_DIR, FILES_UNDERCONSTRUCTION, SNAPSHOT and SNAPSHOT_DIFF."""
    tree, snapshots, kept = namespace.tree, namespace.snapshots, namespace.unknown_fields
    divided = sub_sections > 0
    per_part = -(-len(tree.inodes) // sub_sections) if divided else 0
    with writer.section("INODE", divided=divided) as write:
        last = namespace.counters.last_inode_id
        inodes_writer.write_inodes(
            write, tree.inodes, last, numbers, layout, kept=kept, per_part=per_part
        )
    with writer.section("INODE_DIR", divided=divided) as write:
        inodes_writer.write_directories(
            write, tree.inodes, references, kept=kept, per_part=per_part
        )
    with writer.section("FILES_UNDERCONSTRUCTION") as write:
        inodes_writer.write_files_under_construction(write, open_files(namespace), kept)
    with writer.section("SNAPSHOT") as write:
        snapshots_writer.write_snapshots(write, snapshots, numbers, layout, kept)
    if snapshots_writer.has_diffs(namespace):
        with writer.section("SNAPSHOT_DIFF", divided=divided) as write:
            snapshots_writer.write_diffs(
                write, namespace, numbers, references, layout, per_part=per_part
            )


def open_files(namespace: Namespace) -> list[INodeFile]:
    ids = [number for files in namespace.tree.leases.values() for number in files]
    files = [namespace.tree.inodes[number] for number in ids]
    return [file for file in files if isinstance(file, INodeFile) and file.parent is not None]
