"""Compares the client's answers with the namespace and with the JournalNodes' own files."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, assert_never

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import NAMESERVICE, Layout
from deploy.local.workload.java_client import Tree
from deploy.local.workload.workload import ClientCall, ClientCallKind
from ha.record import dataclass, field
from journal import frame
from namenode_sim.edits.codec import decode
from namenode_sim.edits.ops import Add, Mkdir, Op, RenameOld

Deed = tuple[ClientCallKind, str, str]
"""What was done: kind, path, and for a rename the target."""

_IN_PROGRESS: Final = "edits_inprogress_"


@dataclass(slots=True)
class JournalEdits:
    """The edits of all JournalNodes, taken together.

    ``diverging`` holds the txids for which two finalized copies have different bytes.
    """

    transactions: int = 0
    missing_txids: list[int] = field(default_factory=list)
    diverging: list[int] = field(default_factory=list)
    deeds: Counter[Deed] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What became of the acknowledged writes.

    ``missing`` are those without their effect in the tree, or without their edit in the journal;
    ``duplicated`` those whose edit stands in the journal more than once.
    """

    acknowledged: int
    missing: tuple[str, ...]
    duplicated: tuple[str, ...]
    transactions: int
    gaps: int
    diverging: int

    @property
    def clean(self) -> bool:
        """Nothing lost, nothing twice, one history."""
        return not (self.missing or self.duplicated or self.gaps or self.diverging)


def missing_from_tree(writes: Iterable[ClientCall], tree: Tree) -> list[str]:
    """Return the acknowledged writes whose effect the tree does not show.

    A name whose rename has an unknown outcome may stand at either end.
    """
    moved: dict[str, str] = {}
    perhaps_moved: dict[str, str] = {}
    for write in writes:
        if write.kind is ClientCallKind.RENAME:
            (perhaps_moved if write.error else moved)[write.path] = write.target
    missing = []
    for write in writes:
        if write.error:
            continue
        match write.kind:
            case ClientCallKind.MKDIRS:
                there = write.path in tree.directories
            case ClientCallKind.CREATE:
                place = moved.get(write.path, write.path)
                there = place in tree.files or perhaps_moved.get(write.path) in tree.files
            case ClientCallKind.RENAME:
                there = write.target in tree.files and write.path not in tree.files
            case _:
                assert_never(write.kind)
        if not there:
            missing.append(f"{write.kind} {write.path} {write.target}".rstrip())
    return missing


def read_journal(layout: Layout) -> JournalEdits:
    """Decode every segment of every JournalNode and merge them by txid.

    Where copies differ, finalized ones count; a stale in-progress copy of a node that missed a
    recovery is no history.  Raises LocalClusterError where a finalized segment is damaged.
    """
    finalized: dict[int, tuple[bytes, Op]] = {}
    open_ones: dict[int, tuple[bytes, Op]] = {}
    journal = JournalEdits()
    diverging: set[int] = set()
    for node in layout.journalnodes:
        current = layout.edits_dir(node) / NAMESERVICE / "current"
        for path, data in _segments(current):
            is_open = path.name.startswith(_IN_PROGRESS)
            for txid, raw, op in _edits(path, data, is_open=is_open):
                if is_open:
                    open_ones.setdefault(txid, (raw, op))
                elif finalized.setdefault(txid, (raw, op))[0] != raw:
                    diverging.add(txid)
    merged = {**open_ones, **finalized}
    journal.transactions = len(merged)
    journal.diverging = sorted(diverging)
    if merged:
        journal.missing_txids = [txid for txid in range(1, max(merged)) if txid not in merged]
    for _, op in merged.values():
        if (deed := _deed(op)) is not None:
            journal.deeds[deed] += 1
    return journal


def judge(writes: Iterable[ClientCall], tree: Tree, journal: JournalEdits) -> AuditResult:
    """Compare the acknowledged writes with the tree and with the journal."""
    writes = tuple(writes)
    missing = missing_from_tree(writes, tree)
    duplicated = []
    acknowledged = 0
    for write in writes:
        if write.error:
            continue
        acknowledged += 1
        count = journal.deeds[(write.kind, write.path, write.target)]
        name = f"{write.kind} {write.path} {write.target}".rstrip()
        if count > 1:
            duplicated.append(f"{name} ({count} times)")
        if count == 0 and name not in missing:
            missing.append(f"{name} (not in the journal)")
    return AuditResult(
        acknowledged=acknowledged,
        missing=tuple(missing),
        duplicated=tuple(duplicated),
        transactions=journal.transactions,
        gaps=len(journal.missing_txids),
        diverging=len(journal.diverging),
    )


def _segments(current: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(current.glob("edits_*")):
        try:
            yield path, path.read_bytes()
        except FileNotFoundError:
            # The node lives: it has finalized the segment since we looked, under another name.
            first = path.name.removeprefix(_IN_PROGRESS)
            for finalized in current.glob(f"edits_{first}-*"):
                yield finalized, finalized.read_bytes()


def _edits(path: Path, data: bytes, *, is_open: bool) -> Iterable[tuple[int, bytes, Op]]:
    try:
        layout_version = frame.read_header(data)
    except ValueError as error:
        if is_open:  # opened, and killed before its header was written
            return
        raise LocalClusterError(f"Read the finalized segment {path}; {error}") from error
    scan = frame.scan(data, start=frame.HEADER_BYTES)
    if scan.damage is not None and not is_open:
        raise LocalClusterError(f"Read the finalized segment {path}; {scan.damage}")
    offset = frame.HEADER_BYTES
    while offset < scan.end:
        txid, op, end = decode(data, offset, layout_version)
        yield txid, data[offset:end], op
        offset = end


def _deed(op: Op) -> Deed | None:
    match op:
        case Mkdir():
            return ClientCallKind.MKDIRS, op.path, ""
        case Add():
            return ClientCallKind.CREATE, op.path, ""
        case RenameOld():
            return ClientCallKind.RENAME, op.src, op.dst
        case _:
            return None
