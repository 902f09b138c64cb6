"""The cluster as one drawing, arranged for a desk and for a phone.  Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from ha.cluster import marks
from ha.cluster.files_view import DatanodeView, FilesView
from ha.cluster.marks import Kind, Mark
from ha.cluster.verdict import taking_over
from ha.cluster.view import ClusterView, NameNodeRow

WIDE, NARROW = 1100, 340
"""Widths of the two arrangements, in CSS pixels where the drawing has its own size."""
MOST_CELLS: Final = 240
"""More DataNodes than that are drawn rack by rack."""
MOST_BOXES: Final = 12
"""Of one kind; the text says how many there are more."""
MOST_RACKS: Final = 40
"""Are drawn where DataNodes are not drawn one by one."""
FILLS: Final = 8
"""Steps in which a cell shows how full a DataNode is."""
TITLE, GAP, CELL, PITCH, ACROSS = 24, 10, 20, 18, 18
CHARACTER: Final = 7.4
"""Width of a character of a name, roughly."""


@dataclass(frozen=True, slots=True)
class Box:
    """A process, or a rack: where it is, its name and state, and what else is to be said of it."""

    name: str
    mark: Mark
    more: str = ""
    below: str = ""
    locked: bool = False
    fill: float | None = None
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 46


@dataclass(frozen=True, slots=True)
class Label:
    """Words above boxes or cells."""

    x: int
    y: int
    text: str
    kind: str = "title"


@dataclass(frozen=True, slots=True)
class Cell:
    """One DataNode: how full it is in steps, None where that is not known."""

    x: int
    y: int
    fill: int | None
    mark: Mark
    words: str


@dataclass(slots=True)
class Arrangement:
    """One picture: what is drawn, each at its place."""

    width: int
    height: int = 0
    boxes: list[Box] = field(default_factory=list)
    wires: list[tuple[str, str]] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def tier(
        self, title: str, boxes: Sequence[Box], x: int, y: int, width: int, columns: int,
        most: int = MOST_BOXES,
    ) -> list[Box]:  # fmt: skip
        """Place boxes of one kind below their title, and return them at their places."""
        placed: list[Box] = []
        if not boxes:
            return placed
        more = len(boxes) - most
        title += f", {more} more are not drawn" if more > 0 else ""
        self.labels.append(Label(x, y + 14, title))
        each = (width - GAP * (columns - 1)) // columns
        for number, one in enumerate(boxes[:most]):
            row, column = divmod(number, columns)
            top = y + TITLE + row * (one.height + GAP)
            left = x + column * (each + GAP)
            name = short(one.name, int((each - 30) / CHARACTER))
            placed.append(replace(one, name=name, x=left, y=top, width=each))
        self.boxes += placed
        self.height = max(self.height, placed[-1].y + placed[-1].height)
        return placed


def arranged(view: ClusterView, width: int) -> Arrangement:
    """Draw all processes side by side on a wide screen, one kind below the other on a narrow."""
    made, wide = Arrangement(width), width == WIDE
    servers = [Box(one.server, marks.of_zookeeper(one)) for one in view.zookeepers]
    nodes = [_namenode(view, row) for row in view.namenodes]
    journals = [Box(one.node, marks.of_journalnode(view, one)) for one in view.journalnodes]
    lacks = [view.behind(one) for one in view.journalnodes]
    for number, lack in enumerate(lacks):
        if lack is not None:
            journals[number] = replace(journals[number], more=f"{lack:,} behind")
    if wide:
        first = made.tier(_zookeeper_title(view), servers, 0, 0, 240, 1)
        names = made.tier("NameNodes", nodes, 320, 0, 300, 1)
        lasts = made.tier(_journal_title(view), journals, 700, 0, 400, 1 if len(lacks) < 4 else 2)
    else:
        first = made.tier(_zookeeper_title(view), servers, 0, 0, width, 2)
        names = made.tier("NameNodes", nodes, 0, made.height + GAP, width, 2)
        lasts = made.tier(_journal_title(view), journals, 0, made.height + GAP, width, 2)
    _wires(made, view, first, names, lasts, wide=wide)
    _datanodes(made, view)
    return made


def words(view: ClusterView) -> str:
    """Return what the drawing shows, for those that do not see it."""
    nodes = [_namenode(view, row) for row in view.namenodes[:MOST_BOXES]]
    named = []
    for one in nodes:
        lock = "holds the lock" if one.locked else ""
        said = (f"{one.name} {one.mark.word}", lock, one.more, one.below)
        named.append(", ".join(text for text in said if text))
    parts = [f"NameNodes: {'; '.join(named)}"]
    if view.automatic_failover:
        parts.append(_zookeeper_title(view))
    if view.journalnodes:
        parts.append(_journal_title(view))
    return ". ".join((*parts, _datanode_title(_files(view)))) + "."


def short(text: str, most: int) -> str:
    """Cut a name in its middle: its end has the port."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def _namenode(view: ClusterView, row: NameNodeRow) -> Box:
    zkfc, moving, lag = view.zkfc(row.namenode), taking_over(view), view.lag(row)
    more = "" if lag is None else f"{lag:,} behind"
    if moving is not None and moving.namenode == row.namenode:
        more = "takes over"
    below = "" if zkfc is None else f"ZKFC: {marks.of_zkfc(zkfc).word}"
    locked = view.lock.error is None and view.lock.holder == row.namenode
    return Box(row.namenode, marks.of_namenode(row), more, below, locked=locked, height=62)


def _zookeeper_title(view: ClusterView) -> str:
    if not view.automatic_failover:
        return "failover by hand"
    lock = "not known" if view.lock.error else view.lock.holder or "free"
    return f"ZooKeeper, lock: {lock}"


def _journal_title(view: ClusterView) -> str:
    parts = [view.takes_part(row) for row in view.journalnodes]
    if view.journal_lost:
        quorum = "NO QUORUM"
    elif view.spare_journalnodes is None:
        quorum = "spare ones not known"
    else:
        quorum = f"can lose {view.spare_journalnodes}"
    return f"JournalNodes: {parts.count(True)} of {len(parts)}, {quorum}" if parts else "no journal"


def _files(view: ClusterView) -> FilesView | None:
    return None if view.active is None else view.active.files


def _datanode_title(files: FilesView | None) -> str:
    if files is None:
        return "DataNodes: not known, as no active NameNode reports them"
    counts = {
        "live": files.heard_datanodes, "silent": files.stale_datanodes,
        "dead": files.dead_datanodes, "away": files.retired_datanodes,
    }  # fmt: skip
    said = [f"{number:,} {word}" for word, number in counts.items() if number or word == "live"]
    full = f", {files.used_bytes / files.capacity_bytes:.0%} full" if files.capacity_bytes else ""
    return f"DataNodes: {', '.join(said)}{full}"


def _wires(
    made: Arrangement,
    view: ClusterView,
    servers: Sequence[Box],
    nodes: Sequence[Box],
    journals: Sequence[Box],
    *,
    wide: bool,
) -> None:
    """Join the lock with its holder, and the active with JournalNodes that take part or not."""
    holder = next((one for one in nodes if one.locked), None)
    if holder is not None and servers:
        source = servers[(len(servers) - 1) // 2] if wide else servers[-1]
        made.wires.append(("lock", _wire(source, holder, wide=wide)))
    drawn = zip(view.namenodes, nodes, strict=False)
    active = next((box for row, box in drawn if row is view.active), None)
    for row, box in zip(view.journalnodes, journals, strict=False):
        if active is not None:
            kind = {True: "writes", False: "away", None: "unsure"}[view.takes_part(row)]
            made.wires.append((kind, _wire(active, box, wide=wide)))


def _wire(one: Box, other: Box, *, wide: bool) -> str:
    if wide:
        x, y, end = one.x + one.width, one.y + one.height // 2, other.y + other.height // 2
        middle = (x + other.x) // 2
        return f"M{x} {y}C{middle} {y} {middle} {end} {other.x} {end}"
    x, y, end = one.x + one.width // 2, one.y + one.height, other.x + other.width // 2
    middle = (y + other.y) // 2
    return f"M{x} {y}C{x} {middle} {end} {middle} {end} {other.y}"


def _datanodes(made: Arrangement, view: ClusterView) -> None:
    files, top = _files(view), made.height + 2 * GAP
    racks: dict[str, list[DatanodeView]] = defaultdict(list)
    for one in () if files is None else files.datanodes:
        racks[one.rack or "rack not told"].append(one)
    title, wide = _datanode_title(files), made.width == WIDE
    if files is not None and len(files.datanodes) > MOST_CELLS:
        boxes = [_rack(name, racks[name]) for name in sorted(racks)]
        made.tier(title, boxes, 0, top, made.width, 5 if wide else 2, MOST_RACKS)
    else:
        made.labels.append(Label(0, top + 14, title))
        made.height = _cells(made, racks, top + TITLE)
    if files is not None and files.datanodes and files.not_listed:
        made.height += TITLE
        text = f"and {files.not_listed:,} more, none of them worse"
        made.labels.append(Label(0, made.height - GAP, text, "rack"))


def _cells(made: Arrangement, racks: Mapping[str, list[DatanodeView]], top: int) -> int:
    """Draw a cell for each DataNode, rack after rack, and return where the lowest ends."""
    left, bottom = 0, top
    for rack in sorted(racks):
        name = short(rack, 24)
        columns = min(len(racks[rack]), ACROSS)
        width = max(columns * PITCH, round(len(name) * CHARACTER))
        if left and left + width > made.width:
            left, top = 0, bottom + GAP
        made.labels.append(Label(left, top + 12, name, "rack"))
        # By name and not the worst first, so that each keeps its place.
        for number, one in enumerate(sorted(racks[rack], key=lambda one: (one.host, one.uuid))):
            row, column = divmod(number, columns)
            x, y = left + column * PITCH, top + PITCH + row * (CELL + 4)
            made.cells.append(_cell(one, x, y))
            bottom = max(bottom, y + CELL)
        left += width + 2 * GAP
    return bottom


def _cell(one: DatanodeView, x: int, y: int) -> Cell:
    mark = marks.of_datanode(one)
    # A trace of data is seen all the same.
    fill = None if one.fill is None else max(ceil(min(one.fill, 0.001)), round(FILLS * one.fill))
    full = "" if one.fill is None else f", {one.fill:.0%} full"
    return Cell(x, y, fill and min(fill, FILLS), mark, f"{one.host}: {mark.word}{full}")


def _rack(name: str, nodes: Sequence[DatanodeView]) -> Box:
    found = [marks.of_datanode(one) for one in nodes]
    worst = max(found, key=lambda one: list(Kind).index(one.kind) if one.kind in _SEVERE else 0)
    counts = Counter(one.word for one in found)
    said = ", ".join(f"{counts[word]} {word}" for word in sorted(counts))
    capacity = sum(one.capacity_bytes for one in nodes)
    fill = sum(one.used_bytes for one in nodes) / capacity if capacity else None
    return Box(name, Mark(worst.kind, said), fill=fill)


_SEVERE: Final = (Kind.WARNING, Kind.BAD)
