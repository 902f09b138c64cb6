"""The cluster as one drawing, arranged for a desk and for a phone.  Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from ha.cluster import marks
from ha.cluster.files_view import DatanodeView, FilesView
from ha.cluster.marks import Kind, Mark
from ha.cluster.verdict import taking_over
from ha.cluster.view import ClusterView, NameNodeRow
from ha.record import dataclass, field, replace

WIDE, NARROW = 1100, 340
"""Widths of the two arrangements, in CSS pixels where the drawing has its own size."""
MOST_CELLS: Final = 240
"""More DataNodes than that are drawn rack by rack."""
MOST_BOXES, MOST_RACKS = 12, 40
"""Of one kind; the text says how many there are more."""
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


Cell = tuple[int, int, int | None, Mark, str]
"""A DataNode: its place, how full it is in steps (None: not known), its state, and words."""


@dataclass(slots=True)
class Arrangement:
    """One picture: wires are their kind and path, labels their kind, place and text."""

    width: int
    height: int = 0
    boxes: list[Box] = field(default_factory=list)
    wires: list[tuple[str, str]] = field(default_factory=list)
    labels: list[tuple[str, int, int, str]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def tier(
        self, title: str, boxes: Sequence[Box], x: int, y: int, width: int, columns: int,
        most: int = MOST_BOXES,
    ) -> list[Box]:  # fmt: skip
        """Place boxes of one kind below their title, and return them at their places."""
        placed: list[Box] = []
        if boxes:
            more = f", {len(boxes) - most} more are not drawn" if len(boxes) > most else ""
            self.labels.append(("title", x, y + 14, title + more))
        each = (width - GAP * (columns - 1)) // columns
        for number, one in enumerate(boxes[:most]):
            row, column = divmod(number, columns)
            top, left = y + TITLE + row * (one.height + GAP), x + column * (each + GAP)
            name = short(one.name, int((each - 30) / CHARACTER))
            placed.append(replace(one, name=name, x=left, y=top, width=each))
            self.height = max(self.height, top + one.height)
        self.boxes += placed
        return placed


def arrange(view: ClusterView, width: int) -> Arrangement:
    """Draw all processes side by side on a wide screen, one kind below the other on a narrow."""
    made, titles = Arrangement(width), (_zookeeper_title(view), "NameNodes", _journal_title(view))
    found = (
        [Box(one.server, marks.of_zookeeper(one)) for one in view.zookeepers],
        [_namenode(view, row) for row in view.namenodes],
        [
            Box(row.node, marks.of_journalnode(view, row), _behind(view.behind(row)))
            for row in view.journalnodes
        ],
    )
    columns = 1 if len(view.journalnodes) < 4 else 2
    places = ((0, 240, 1), (320, 300, 1), (700, 400, columns))
    tiers, wide = [], width == WIDE
    for title, boxes, place in zip(titles, found, places, strict=True):
        top = 0 if wide or not made.height else made.height + GAP
        x, room, across = place if wide else (0, width, 2)
        tiers.append(made.tier(title, boxes, x, top, room, across))
    made.wires += _wires(view, *tiers)
    _datanodes(made, view)
    return made


def words(made: Arrangement) -> str:
    """Return what a drawing shows, for those that do not see it."""
    titles = [text for kind, _, _, text in made.labels if kind == "title" and text != "NameNodes"]
    boxes = [" ".join((one.name, one.mark.word, one.more, one.below)).strip() for one in made.boxes]
    return f"{'. '.join(titles)}. {'; '.join(boxes)}."


def short(text: str, most: int) -> str:
    """Cut a name in its middle: its end has the port."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def _namenode(view: ClusterView, row: NameNodeRow) -> Box:
    zkfc, moving = view.zkfc(row.namenode), taking_over(view)
    takes_over = moving is not None and moving.namenode == row.namenode
    more = "takes over" if takes_over else _behind(view.lag(row))
    below = "" if zkfc is None else f"ZKFC: {marks.of_zkfc(zkfc).word}"
    locked = view.lock.error is None and view.lock.holder == row.namenode
    return Box(row.namenode, marks.of_namenode(row), more, below, locked=locked, height=62)


def _behind(transactions: int | None) -> str:
    return "" if transactions is None else f"{transactions:,} behind"


def _zookeeper_title(view: ClusterView) -> str:
    return f"ZooKeeper, lock: {'not known' if view.lock.error else view.lock.holder or 'free'}"


def _journal_title(view: ClusterView) -> str:
    parts, spare = [view.takes_part(row) for row in view.journalnodes], view.spare_journalnodes
    quorum = "spare ones not known" if spare is None else f"can lose {spare}"
    quorum = "NO QUORUM" if view.journal_lost else quorum
    return f"JournalNodes: {parts.count(True)} of {len(parts)}, {quorum}"


def _files(view: ClusterView) -> FilesView | None:
    return None if view.active is None else view.active.files


def _datanode_title(files: FilesView | None) -> str:
    if files is None:
        return "DataNodes: not known, as no active NameNode reports them"
    said = [f"{files.heard_datanodes:,} live"]
    words = ("silent", "dead", "away")
    others = (files.stale_datanodes, files.dead_datanodes, files.retired_datanodes)
    said += [f"{n:,} {word}" for word, n in zip(words, others, strict=True) if n]
    full = f", {files.used_bytes / files.capacity_bytes:.0%} full" if files.capacity_bytes else ""
    return f"DataNodes: {', '.join(said)}{full}"


def _wires(
    view: ClusterView, servers: Sequence[Box], nodes: Sequence[Box], journals: Sequence[Box]
) -> Iterator[tuple[str, str]]:
    """Join the lock with its holder, and the active with JournalNodes that take part or not."""
    for one in nodes:
        if one.locked and servers:
            yield "lock", _wire(servers[(len(servers) - 1) // 2], one)
    kinds = {True: "writes", False: "away", None: "unsure"}
    for writer, node in zip(view.namenodes, nodes, strict=False):
        for row, box in zip(view.journalnodes, journals, strict=False):
            if writer is view.active:
                yield kinds[view.takes_part(row)], _wire(node, box)


def _wire(one: Box, other: Box) -> str:
    """Return a path from the middle of one box to that of another; boxes hide its ends."""
    ends = [(box.x + box.width // 2, box.y + box.height // 2) for box in (one, other)]
    return "M{} {}L{} {}".format(*ends[0], *ends[1])


def _datanodes(made: Arrangement, view: ClusterView) -> None:
    files, top = _files(view), made.height + 2 * GAP
    racks: dict[str, list[DatanodeView]] = defaultdict(list)
    for one in () if files is None else files.datanodes:
        racks[one.rack or "rack not told"].append(one)
    title = _datanode_title(files)
    if files is not None and len(files.datanodes) > MOST_CELLS:
        boxes = [_rack(name, racks[name]) for name in sorted(racks)]
        made.tier(title, boxes, 0, top, made.width, 5 if made.width == WIDE else 2, MOST_RACKS)
    else:
        made.labels.append(("title", 0, top + 14, title))
        made.height = _cells(made, racks, top + TITLE)
    if files is not None and files.datanodes and files.not_listed:
        made.height += TITLE
        text = f"and {files.not_listed:,} more, none of them worse"
        made.labels.append(("rack", 0, made.height - GAP, text))


def _cells(made: Arrangement, racks: Mapping[str, list[DatanodeView]], top: int) -> int:
    """Draw a cell for each DataNode, rack after rack, and return where the lowest ends."""
    left, bottom = 0, top
    for rack in sorted(racks):
        name, columns = short(rack, 24), min(len(racks[rack]), ACROSS)
        width = max(columns * PITCH, round(len(name) * CHARACTER))
        if left and left + width > made.width:
            left, top = 0, bottom + GAP
        made.labels.append(("rack", left, top + 12, name))
        # By name and not the worst first, so that each keeps its place.
        for number, one in enumerate(sorted(racks[rack], key=lambda one: (one.host, one.uuid))):
            row, column = divmod(number, columns)
            y = top + PITCH + row * (CELL + 4)
            made.cells.append(_cell(one, left + column * PITCH, y))
            bottom = max(bottom, y + CELL)
        left += width + 2 * GAP
    return bottom


def _cell(one: DatanodeView, x: int, y: int) -> Cell:
    mark, share = marks.of_datanode(one), one.fill
    if share is None:
        return x, y, None, mark, f"{one.host}: {mark.word}"
    # A trace of data is seen all the same.
    fill = min(FILLS, max(ceil(min(share, 0.001)), round(FILLS * share)))
    return x, y, fill, mark, f"{one.host}: {mark.word}, {share:.0%} full"


def _rack(name: str, nodes: Sequence[DatanodeView]) -> Box:
    found = [marks.of_datanode(one) for one in nodes]
    kinds = [one.kind for one in found]
    worst = next((kind for kind in (Kind.BAD, Kind.WARNING) if kind in kinds), Kind.GOOD)
    counts = sorted(Counter(one.word for one in found).items())
    said = ", ".join(f"{number} {word}" for word, number in counts)
    capacity = sum(one.capacity_bytes for one in nodes)
    fill = sum(one.used_bytes for one in nodes) / capacity if capacity else None
    return Box(name, Mark(worst, said), fill=fill)
