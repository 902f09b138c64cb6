"""The report that Hadoop's DFSck prints (NamenodeFsck); it reads its exit code from the end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from ha.record import dataclass, field
from namenode_sim.blocks.needed import COPIED, Priority
from namenode_sim.client_protocol.fsck.facts import (
    UNREADABLE,
    BlockFacts,
    Condition,
    FileFacts,
    ReplicaFacts,
    block_facts,
    check,
)
from namenode_sim.client_protocol.fsck.storage_policies import Placement, placements, policies_text
from namenode_sim.client_protocol.reads.cluster_health import missing_blocks
from namenode_sim.client_protocol.words.errors import FsError, not_found
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.permissions import READ, check_path, check_superuser, find
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.namespace.inode import STRIPED, full_path

MOST_LISTED: Final = 1000
"""The most blocks that programs are given at once."""
MOST_NEEDED: Final = 100
"""Of each urgency: they are judged without a pause."""
_MOST_DIGITS: Final = 19
_FINE: Final = ("healthy", "being written")
_PLACES: Final = frozenset({"locations", "racks", "replicadetails", "upgradedomains"})
_ELSEWHERE: Final = {
    "left": "Decommissioned", "leaving": "Decommissioning", "maintained": "EnteringMaintenance",
    "away": "InMaintenance",
}  # fmt: skip
_SUMS: Final = (
    "dir symlink files size blocks open_files open_size open_blocks striped_files striped_size "
    "striped_blocks unreadable_files missing missing_size corrupt corrupt_size under over "
    "misplaced minimal under_minimum replicas expected_replicas missing_replicas left leaving "
    "maintained away not_listed"
)
_MAINTENANCE: Final = (Condition.MAINTAINED, Condition.AWAY)


@dataclass(slots=True)
class Report:
    """One report.  ``flags`` are the names of the parameters that are set, as DFSck sends them.

    Programs (``form``) are given the blocks that are not as they should be, or with ``blocks`` all.
    """

    scene: Scene
    redundancy: Redundancy
    path: str
    flags: frozenset[str]
    totals: "Counter[str]" = field(default_factory=lambda: Counter(dict.fromkeys(_SUMS.split(), 0)))
    _listed: list[Mapping[str, object]] = field(default_factory=list)
    _placements: "Counter[Placement]" = field(default_factory=Counter)

    def steps(self) -> Iterator[str]:
        """Yield the text up to the verdict; an empty one where others may have their turn."""
        snapshots = "includeSnapshots" in self.flags
        for found in check(self.scene, self.redundancy, self.path, with_snapshots=snapshots):
            match found:
                case None:
                    yield ""
                case (path, kind):
                    self.totals[kind] += 1
                    yield f"{path} <{kind}>\n" if "files" in self.flags else ""
                case FileFacts() if found.is_open and "openforwrite" not in self.flags:
                    self.totals["open_files"] += 1
                    self.totals["open_size"] += found.length
                    self.totals["open_blocks"] += len(found.blocks)
                case FileFacts():
                    add(self.totals, self.scene, found)
                    self._placements.update(placements(found))
                    self.list_blocks(found.path, *found.blocks)
                    yield from self._file(found)
        yield summary(self.totals, self.scene)
        if "storagepolicies" in self.flags:
            yield policies_text(self._placements)

    def verdict(self) -> str:
        state = "HEALTHY" if is_healthy(self.totals) else "CORRUPT"
        return f"\n\nThe filesystem under path '{self.path}' is {state}"

    def list_blocks(self, path: str, *blocks: BlockFacts) -> None:
        """List blocks for programs, and count those that there is no room for."""
        if "form" in self.flags:
            every = {"blocks", "blockId"} & self.flags
            found = [one for one in blocks if every or one.state not in _FINE]
            listed = found[: MOST_LISTED - len(self._listed)]
            self.totals["not_listed"] += len(found) - len(listed)
            self._listed += [{"path": path, **one.as_json()} for one in listed]

    def list_needed(self) -> None:
        """List the first blocks that lack replicas, missing ones first, and count the others."""
        check_superuser(self.scene.caller)
        needed, inodes = self.scene.cluster.blocks.needed, self.scene.namespace.tree.inodes
        for priority in (Priority.MISSING, *COPIED):
            slots = needed.listed(priority, MOST_NEEDED)
            self.totals["not_listed"] += needed.size(priority) - len(slots)
            for slot in slots:
                found = block_facts(self.scene, self.redundancy, slot)
                if (file := inodes.get(found.block.file_id)) is not None:
                    self.list_blocks(full_path(file), found)

    def as_json(self) -> Mapping[str, object]:
        healthy = is_healthy(self.totals)
        return {"healthy": healthy, "totals": self.totals, "blocks": self._listed}

    def _file(self, file: FileFacts) -> Iterator[str]:
        shows, wanted, fine = "files" in self.flags, file.node.replication, True
        if file.is_open or shows:
            yield f"{file.path} {file.length} bytes, replicated: replication={wanted}, "
            yield f"{len(file.blocks)} block(s)" + (", OPENFORWRITE: " if file.is_open else ": ")
        start = "" if shows else f"\n{file.path}:"
        for one in file.blocks:
            wrong = self._wrong(one, file.path, wanted, start)
            fine = fine and not wrong
            yield wrong
        for state in UNREADABLE:
            sizes = [one.block.length for one in file.blocks if one.state == state]
            if sizes:
                fine = False
                yield f"{start} {state.upper()} {len(sizes)} blocks of total size {sum(sizes)} B"
                yield "\n" if shows else "."
        yield " OK\n" if shows and fine else ""
        if shows and "blocks" in self.flags:
            yield from map(self._line, range(len(file.blocks)), file.blocks)
            yield "\n"

    def _wrong(self, one: BlockFacts, path: str, wanted: int, start: str) -> str:
        counts, said, pool = one.counts, "", self.scene.cluster.pool
        if one.state == "corrupt":
            said = f"\n{path}: CORRUPT blockpool {pool} block blk_{one.block.id}\n"
        if 0 < one.readable < wanted:
            said = (
                f"{start} Under replicated {self._name(one)}. Target Replicas is {wanted} but "
                f"found {len(counts.live)} live replica(s), {len(counts.left)} decommissioned "
                f"replica(s), {len(counts.leaving)} decommissioning replica(s)"
            )
            if "maintenance" in self.flags:
                said += f", {len(counts.maintained)} entering maintenance replica(s) and "
                said += f"{len(counts.away)} in maintenance replica(s)"
            said += ".\n"
        if one.is_misplaced:
            said += f"{start} Replica placement policy is violated for {self._name(one)}. "
            said += "Block should be additionally replicated on 1 more rack(s).\n"
        return said

    def _name(self, one: BlockFacts) -> str:
        return f"{self.scene.cluster.pool}:blk_{one.block.id}_{one.block.stamp}"

    def _line(self, number: int, one: BlockFacts) -> str:
        said = f"{number}. {self._name(one)} len={one.block.length}"
        places = f"  [{', '.join(map(self._place, one.replicas))}]" if _PLACES & self.flags else ""
        if one.judged is None:
            return f"\nUnder Construction Block:\n{said} Expected_repl={len(one.replicas)}{places}"
        live = f" Live_repl={len(one.counts.live)}{places}"
        return f"{said}{' MISSING!' if one.state == 'missing' else live}\n"

    def _place(self, one: ReplicaFacts) -> str:
        node, storage = one.place
        address = node.id.transfer_address
        said = f"DatanodeInfoWithStorage[{address},{storage.uuid},{storage.type.name}]"
        said = f"{node.rack}/{address}" if "racks" in self.flags else said
        said += "(ud=undefined)" if "upgradedomains" in self.flags else ""
        return said + (f"({self._state(one)})" if "replicadetails" in self.flags else "")

    def _state(self, one: ReplicaFacts) -> str:
        hidden = one.condition in _MAINTENANCE and "maintenance" not in self.flags
        if one.condition not in {Condition.LIVE, Condition.WRITTEN} and not hidden:
            return one.condition.upper()
        if one.silent:
            return "STALE_NODE"
        return "LIVE" if one.place[1].held.confirmed else "STALE_BLOCK_CONTENT"


def find_block(scene: Scene, redundancy: Redundancy, word: str) -> tuple[str, BlockFacts]:
    """Return a block by its name or number, and the path of its file; raise FsError without one.

    The caller must be allowed to read the file.
    """
    digits = word.removeprefix("blk_").partition("_")[0]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise not_found(f"Incorrect blockId format: {word}")
    slot = scene.cluster.blocks.map.find(int(digits))
    found = None if slot is None else block_facts(scene, redundancy, slot)
    file = None if found is None else scene.namespace.tree.inodes.get(found.block.file_id)
    route = None if file is None else find(scene, full_path(file))
    if route is not None and route.last is file:
        check_path(scene.caller, route, READ)
    else:
        check_superuser(scene.caller)  # others do not learn which blocks there are, or were
    if found is None or file is None:
        raise not_found(f"Block {word} does not exist")
    return full_path(file), found


def block_text(report: Report, word: str) -> str:
    """Return what DFSck prints of a block with -blockId."""
    try:
        path, one = find_block(report.scene, report.redundancy, word)
    except FsError as error:
        return f"\n{error.message}\n"
    counts, said = one.counts, f"\nBlock Id: {word}\nBlock belongs to: {path}\n"
    for name, number in (
        ("Expected", one.block.expected), ("live", len(counts.live)),
        ("excess", len(counts.excess)), ("stale", len(counts.unconfirmed)),
        ("decommissioned", len(counts.left)), ("decommissioning", len(counts.leaving)),
        ("corrupted", len(counts.corrupt)),
    ):  # fmt: skip
        said += f"No. of {name} Replica: {number}\n"
    for replica in one.replicas:
        node, state = replica.place[0], replica.condition.upper()
        if replica.condition is Condition.CORRUPT:
            state += f"\t ReasonCode: {replica.why}"
        elif replica.condition in {Condition.LIVE, Condition.EXCESS, Condition.WRITTEN}:
            state = "HEALTHY"
        said += f"Block replica on datanode/rack: {node.id.host}{node.rack} is {state}\n"
    return said


def missing_text(scene: Scene, path: str, after: str) -> str:
    """Return a page of the files with missing blocks; the cookie counts the blocks before it."""
    found, seen = missing_blocks(scene, path, after)
    lines = "".join(f"blk_{block}\t{where}\n" for block, where in found)
    count = str(len(found)) if found else "no more" if seen else "no"
    said = f"The filesystem under path '{path}' has {count} CORRUPT files"
    return f"Cookie:\t{seen}\n{lines}\n\n{said}\n"


def add(totals: "Counter[str]", scene: Scene, file: FileFacts) -> None:
    """Count a file and its blocks; of striped groups nothing but their number is known."""
    kind = "striped_" if file.node.block_type == STRIPED else ""
    totals[f"{kind}files"] += 1
    totals[f"{kind}size"] += file.length
    totals[f"{kind}blocks"] += len(file.node.blocks) if kind else len(file.blocks)
    totals["unreadable_files"] += any(one.state in UNREADABLE for one in file.blocks)
    wanted = file.node.replication
    for one in file.blocks:
        if one.judged is None:
            continue
        good = one.readable
        if one.state in UNREADABLE:
            totals[one.state] += 1
            totals[f"{one.state}_size"] += one.block.length
        enough = scene.cluster.blocks.map.has_minimum(good)
        totals["minimal" if enough else "under_minimum"] += 1
        totals["over"] += len(one.counts.live) > wanted
        totals["under"] += 0 < good < wanted
        totals["misplaced"] += one.is_misplaced
        totals["missing_replicas"] += max(0, wanted - good) if good else 0
        totals["replicas"] += good
        totals["expected_replicas"] += wanted
        totals.update({name: len(getattr(one.counts, name)) for name in _ELSEWHERE})


def is_healthy(totals: "Counter[str]") -> bool:
    return not (totals["missing"] or totals["corrupt"])


def summary(totals: "Counter[str]", scene: Scene) -> str:
    """Return the text from Status on, in Hadoop's order and words."""
    nodes = [node for node in scene.cluster.nodes.values() if node.alive]
    blocks = totals["blocks"]

    def of_blocks(name: str) -> str:
        return f"{totals[name]}{_share(totals[name], blocks)}"

    worst = stars = "  ********************************\n"
    worst += (
        f"  UNDER MIN REPL'D BLOCKS:\t{of_blocks('under_minimum')}\n"
        f"  CORRUPT FILES:\t{totals['unreadable_files']}\n"
        f"  MISSING BLOCKS:\t{totals['missing']}\n  MISSING SIZE:\t\t{totals['missing_size']} B\n"
        f"  CORRUPT BLOCKS: \t{totals['corrupt']}\n  CORRUPT SIZE:\t\t{totals['corrupt_size']} B\n"
    )
    average = f" (avg. block size {totals['size'] // blocks} B)" if blocks else ""
    missing = _share(totals["missing_replicas"], totals["expected_replicas"])
    elsewhere = ((java, totals[name]) for name, java in _ELSEWHERE.items() if totals[name])
    return (
        f"\nStatus: {'HEALTHY' if is_healthy(totals) else 'CORRUPT'}\n"
        f" Number of data-nodes:\t{len(nodes)}\n"
        f" Number of racks:\t\t{len({node.rack for node in nodes})}\n"
        f" Total dirs:\t\t\t{totals['dir']}\n Total symlinks:\t\t{totals['symlink']}\n\n"
        f"Replicated Blocks:\n Total size:\t{totals['size']} B"
        f"{_more(' (Total open files size: {} B)', totals['open_size'])}\n"
        f" Total files:\t{totals['files']}"
        f"{_more(' (Files currently being written: {})', totals['open_files'])}\n"
        f" Total blocks (validated):\t{blocks}{average}"
        f"{_more(' (Total open file blocks (not validated): {})', totals['open_blocks'])}\n"
        f"{worst + stars if totals['unreadable_files'] or totals['under_minimum'] else ''}"
        f" Minimally replicated blocks:\t{of_blocks('minimal')}\n"
        f" Over-replicated blocks:\t{of_blocks('over')}\n"
        f" Under-replicated blocks:\t{of_blocks('under')}\n"
        f" Mis-replicated blocks:\t\t{of_blocks('misplaced')}\n"
        f" Default replication factor:\t{scene.settings.replication}\n"
        f" Average block replication:\t{np.float32(totals['replicas'] / (blocks or 1))!s}\n"
        f" Missing blocks:\t\t{totals['missing']}\n Corrupt blocks:\t\t{totals['corrupt']}\n"
        f" Missing replicas:\t\t{totals['missing_replicas']}{missing}\n"
        + "".join(f" {name}Replicas:\t{number}\n" for name, number in elsewhere)
        + f"\nErasure Coded Block Groups:\n Total size:\t{totals['striped_size']} B\n"
        f" Total files:\t{totals['striped_files']}\n Total block groups (validated):\t0"
        f"{_more(' (not validated: {})', totals['striped_blocks'])}\n\n"
    )


def _share(part: int, whole: int) -> str:
    """Return a percentage as Java prints a float of it; empty where there is nothing."""
    return f" ({np.float32(part * 100) / np.float32(whole)!s} %)" if whole else ""


def _more(text: str, number: int) -> str:
    return text.format(number) if number else ""
