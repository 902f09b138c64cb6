"""The planner: one pass over the edits finds which places of the image they ask about.

Nothing of the image is known yet, so the pass is symbolic.  Every place is a number: a node of the
trie (what lies there in the image, perhaps nothing), or something that the edits made.  A directory
of the image that was changed has an overlay, by name.  A rename moves the number, so that a later
path below a renamed directory asks for its place in the image.

What an edit does can depend on what the image has there: only for OP_RENAME_OLD, and for an
OP_MKDIR that meets something.  There the planner guesses what a NameNode would have logged, and
notes the guess.  A wrong one is noticed when the answers are in; planning again with them ends it.

See docs/reference/checkpoint.md#plan.
"""

from array import array
from collections.abc import Callable, Iterable
from typing import Final

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.errors import TxIdOutOfOrder
from namenode_sim.namespace.tree import components
from spark.merge.garbage_collection import no_collection
from spark.merge.model import BaseFacts, MergePlan
from spark.merge.plan.place_kinds import ABSENT, DIRECTORY, KIND_BITS, OTHER, UNKNOWN, Kinds
from spark.merge.trie import GAINS, NEED, ROOT, BaseTrie

GONE: Final = -1
"""No such thing any more, or never."""
FILE: Final = -2
"""A file or symlink; if it lay in the image, its message is already wanted."""
_FIRST_DIRECTORY: Final = -3
"""Created directories count down from here."""

_KIND_OF_MADE: Final = {GONE: ABSENT, FILE: OTHER}
_MAX_CACHED: Final = 50_000


def plan_edits(
    edits: Iterable[tuple[TxId, Op]],
    base: BaseFacts,
    *,
    trie: BaseTrie | None = None,
    kinds: Kinds | None = None,
) -> MergePlan:
    """Find out what of the image the edits ask about.

    Args:
        edits: the edits, from at most the one behind the image on; earlier ones are passed over.
        base: the image's own figures.
        trie: the one of an earlier plan of the same edits, whose guesses were wrong.
        kinds: what the image has at that trie's nodes.

    Returns:
        The plan.  If only one process can do it, it is not complete and says why.

    Raises:
        TxIdOutOfOrder: if an edit is missing.
    """
    planner = _Planner(base, trie or BaseTrie(), kinds or Kinds(b""))
    first = TxId(base.last_applied + 1)
    with no_collection():
        last, reason = planner.follow(edits, first)
    # A planner that plans again does not know which of the trie's nodes the edits reach.
    reached = len(planner.trie) if trie is None else None
    planner.ask_for_open_files()
    return MergePlan(
        trie=planner.trie,
        first=first,
        last=last,
        count=last - first + 1,
        trusted={node: names for node, names in planner.overlays.items() if node >= 0},
        guesses=planner.guesses,
        reached=len(planner.trie) if reached is None else reached,
        single_process_because=reason,
    )


_SNAPSHOT_OPS: Final = (
    ops.AllowSnapshot,
    ops.DisallowSnapshot,
    ops.CreateSnapshot,
    ops.DeleteSnapshot,
    ops.RenameSnapshot,
)

_QUOTA_OPS: Final = (ops.SetQuota, ops.SetNsQuota, ops.ClearNsQuota, ops.SetQuotaByStorageType)
"""Hadoop logs these with the path that its client wrote, which may be below /.reserved."""

_ON_ONE_NODE: Final[tuple[type[Op], ...]] = (
    ops.Close,
    ops.Append,
    ops.AddBlock,
    ops.UpdateBlocks,
    ops.Truncate,
    ops.SetReplication,
    ops.ReassignLease,
    ops.SetPermissions,
    ops.SetOwner,
    ops.Times,
    *_QUOTA_OPS,
    ops.SetAcl,
    ops.SetXAttr,
    ops.RemoveXAttr,
    ops.SetStoragePolicy,
)
"""What changes the inode at ``path`` and nothing else."""


class _Planner:
    """The symbolic state: what lies where."""

    __slots__ = (
        "_base",
        "_children",
        "_directories",
        "_flags",
        "_kinds",
        "_last_id",
        "_next_directory",
        "guesses",
        "overlays",
        "trie",
    )

    def __init__(self, base: BaseFacts, trie: BaseTrie, kinds: Kinds) -> None:
        self._base = base
        self.trie = trie
        self._kinds = kinds
        self._flags = trie.flags
        self._children = trie.children
        self.overlays: dict[int, dict[bytes, int]] = {}
        """What the edits put into a directory or took out of it, by name.  A name never leaves:
        it may become GONE.  One that is not in the trie was never asked about."""
        self.guesses = array("q")
        self._directories: dict[str, int] = {}
        """Where paths of directories lead; emptied whenever one of them may lead elsewhere."""
        self._last_id = base.last_inode_id
        self._next_directory = _FIRST_DIRECTORY

    def follow(self, edits: Iterable[tuple[TxId, Op]], first: TxId) -> tuple[TxId, str | None]:
        """Go through the edits; the last one, and why one process must do it if that shows."""
        handlers = self._handlers()
        expected = int(first)
        for txid, op in edits:
            if txid != expected:
                if txid < first:
                    continue
                raise TxIdOutOfOrder(expected, txid)
            expected += 1
            handler = handlers.get(type(op))
            if isinstance(op, _QUOTA_OPS) and op.path.startswith("/.reserved/"):
                return txid, (
                    f"transaction {txid} ({type(op).__name__}) names {op.path}, no plain path"
                )
            if handler is not None:
                handler(op)
            elif isinstance(op, _SNAPSHOT_OPS):
                return txid, (
                    f"transaction {txid} is an edit about snapshots ({type(op).__name__}), which "
                    "may reach every inode of a tree"
                )
        return TxId(expected - 1), None

    def _handlers(self) -> dict[type[Op], Callable[..., None]]:
        """Return what to do by class of edit; edits about no path have nothing."""
        return {
            **dict.fromkeys(_ON_ONE_NODE, self._one_node),
            ops.Add: self._add,
            ops.Mkdir: self._mkdir,
            ops.Symlink: self._symlink,
            ops.Delete: self._delete,
            ops.RenameOld: self._rename_old,
            ops.Rename: self._rename,
            ops.ConcatDelete: self._concat,
        }

    def ask_for_open_files(self) -> None:
        """Ask for open files: their paths change when a directory above is renamed.

        They are written anew, and are paths in the image, so they do not go through the overlays.
        """
        for file in self._base.open_files:
            node = ROOT
            for name in components(file.path):
                node = self.trie.child(node, name)
            self._need(node)

    # Where things lie

    def _at(self, directory: int, name: bytes) -> int:
        """Return what has a name in a directory; ask about it if only the image has that."""
        overlay = self.overlays.get(directory)
        if overlay is not None:
            found = overlay.get(name)
            if found is not None:
                return found
        return self.trie.child(directory, name) if directory >= 0 else GONE

    def _split(self, path: str) -> tuple[int, bytes]:
        """Return the directory that holds a path, and the last name, empty for the root."""
        cut = path.rfind("/")
        above = path[:cut] if cut > 0 else ""
        name = path[cut + 1 :]
        if not name:
            parts = [part for part in path.split("/") if part]
            if not parts:
                return ROOT, b""
            name = parts.pop()
            above = "/".join(parts)
        directory = self._directories.get(above)
        if directory is None:
            directory = self._walk(above)
        return directory, name.encode("utf-8", "replace")

    def _walk(self, path: str) -> int:
        node = ROOT
        for part in path.split("/"):
            if part:
                node = self._at(node, part.encode("utf-8", "replace"))
        if node >= 0 or node <= _FIRST_DIRECTORY:
            if len(self._directories) >= _MAX_CACHED:
                self._directories.clear()
            self._directories[path] = node
        return node

    def _find(self, path: str) -> int:
        """Return what lies at a path; its message is wanted."""
        directory, name = self._split(path)
        return self._need(self._at(directory, name)) if name else ROOT

    def _need(self, node: int) -> int:
        if node >= 0:
            self._flags[node] |= NEED
        return node

    def _gains(self, directory: int) -> None:
        """Note that a child may come: the directory's default ACL, group and mtime matter."""
        if directory >= 0:
            self._flags[directory] |= NEED | GAINS

    def _put(self, directory: int, name: bytes, node: int) -> None:
        """Give ``node`` that name from now on; what had it before is out of the way."""
        overlay = self.overlays.get(directory)
        if overlay is None:
            overlay = self.overlays[directory] = {}
        old = overlay.get(name)
        if old is None:
            old = (self._children[directory] or {}).get(name, GONE) if directory >= 0 else GONE
        if old <= _FIRST_DIRECTORY or (
            old >= 0 and (self._children[old] is not None or old in self.overlays)
        ):
            self._directories.clear()
        overlay[name] = node

    # Guesses about the image

    def _kind(self, node: int, guess: int, *, fine: int = 0) -> int:
        """Return what ``node`` is; a guess if only the image can say.

        ``fine`` are the kinds (as bits) with which the guess would be as good.
        """
        if node < 0:
            return _KIND_OF_MADE.get(node, DIRECTORY)
        kind = DIRECTORY if node == ROOT else self._kinds.of(node)
        if kind == UNKNOWN:
            kind = guess
            self.guesses.append(node << KIND_BITS | 1 << guess | fine)
        return kind

    def _exists(self, node: int, *, likely: bool) -> bool:
        if likely:
            return self._kind(node, OTHER, fine=1 << DIRECTORY) != ABSENT
        return self._kind(node, ABSENT) != ABSENT

    def _was_put(self, directory: int, name: bytes) -> bool:
        """Return whether an edit has put something under that name."""
        return self.overlays.get(directory, {}).get(name, GONE) != GONE

    # Edits

    def _one_node(self, op: ops.Close) -> None:
        self._find(op.path)

    def _add(self, op: ops.Add) -> None:
        """Add a file: with an id never seen and no overwriting, its path was free.

        Such an edit would not be logged otherwise.  Else what is there is deleted, or opened again
        (logs before layout -62).
        """
        directory, name = self._split(op.path)
        self._gains(directory)
        if op.inode_id > self._last_id:
            self._last_id = op.inode_id
            ask = op.overwrite
        else:
            ask = True
        if ask or name in self.overlays.get(directory, ()):
            self._need(self._at(directory, name))
        elif directory >= 0:
            asked = (self._children[directory] or {}).get(name)
            if asked is not None:
                self._need(asked)
        self._put(directory, name, FILE)

    def _mkdir(self, op: ops.Mkdir) -> None:
        """Make a directory, unless one exists; guess that none does, as it would not be logged."""
        directory, name = self._split(op.path)
        self._last_id = max(self._last_id, op.inode_id)
        self._gains(directory)
        if not name:
            return
        node = self._need(self._at(directory, name))
        if not self._exists(node, likely=self._was_put(directory, name)):
            self._put(directory, name, self._next_directory)
            self._next_directory -= 1

    def _symlink(self, op: ops.Symlink) -> None:
        directory, name = self._split(op.path)
        self._last_id = max(self._last_id, op.inode_id)
        self._gains(directory)
        self._put(directory, name, FILE)

    def _delete(self, op: ops.Delete) -> None:
        directory, name = self._split(op.path)
        self._take(directory, name)

    def _take(self, directory: int, name: bytes) -> int:
        """Return what had that name, which is free now."""
        if not name:
            return GONE
        node = self._need(self._at(directory, name))
        if node != GONE:
            self._need(directory)
            self._put(directory, name, GONE)
        return node

    def _concat(self, op: ops.ConcatDelete) -> None:
        directory, name = self._split(op.target)
        self._need(directory)
        self._need(self._at(directory, name))
        for source in op.sources:
            self._take(*self._split(source))

    def _rename(self, op: ops.Rename) -> None:
        """Succeeds; without OVERWRITE the destination was free, or it would not be logged."""
        node = self._take(*self._split(op.src))
        directory, name = self._split(op.dst)
        self._gains(directory)
        if RenameOption.OVERWRITE in op.options:
            self._need(self._at(directory, name))
        self._put(directory, name, FILE if node == GONE else node)

    def _rename_old(self, op: ops.RenameOld) -> None:
        """Into the destination if that is a directory; nothing happens where it cannot."""
        src, dst = _plain(op.src), _plain(op.dst)
        directory, name = self._split(src)
        if not name:
            return
        node = self._need(self._at(directory, name))
        if not self._exists(node, likely=True):
            return
        to, to_name = self._split(dst)
        existing = self._need(self._at(to, to_name)) if to_name else ROOT
        if f"{dst}/".startswith(f"{src}/"):
            return
        kind = self._kind_of_target(to, to_name, existing, src, dst)
        if kind == DIRECTORY:
            if f"{dst.rstrip('/')}{src[src.rfind('/') :]}" == src:
                return
            to, to_name = existing, name
            existing = self._need(self._at(to, to_name))
            if self._exists(existing, likely=self._was_put(to, to_name)):
                return
        elif kind != ABSENT or self._kind(to, DIRECTORY) != DIRECTORY:
            return
        self._need(directory)
        self._gains(to)
        self._put(directory, name, GONE)
        self._put(to, to_name, node)

    def _kind_of_target(self, to: int, name: bytes, existing: int, src: str, dst: str) -> int:
        """NameNodes log where a node went to, which was free; old ones a directory it went into."""
        if (
            src.startswith(f"{dst.rstrip('/')}/")
            or self._was_put(to, name)
            or (existing >= 0 and self._flags[existing] & GAINS)
        ):
            return self._kind(existing, DIRECTORY)
        return self._kind(existing, ABSENT)


def _plain(path: str) -> str:
    """Return a path in one form for each place: equal text whenever it is the same place."""
    if path.isascii() and path[:1] == "/" and path[-1:] != "/" and "//" not in path:
        return path
    parts = path.encode("utf-8", "replace").decode().split("/")
    return "/" + "/".join(part for part in parts if part)
