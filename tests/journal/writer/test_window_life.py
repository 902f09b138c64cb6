"""A window through a long life: what it keeps, counts and reports after each step, as one text."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

from journal.errors import InvariantBroken, JournalError, Unavailable
from journal.model import LAYOUT_VERSION, NodeName, TxId
from journal.writer.window import SegmentEnd, Window
from tests.journal.writer.journal_cluster import edit, edits
from tests.transitions import same_as

NODES = [NodeName(f"{name}:1") for name in "abc"]
DOWN, LEARNS = Unavailable("down"), Unavailable("learns")
STEPS = 700
LIMIT_BYTES = 6 * len(edit(100))
_ACTS = (
    ("write",) * 4
    + ("ack",) * 8
    + ("message",) * 2
    + ("fail", "back", "back", "roll", "roll", "mark")
)


class Life:
    """Draws what channels and writers do, and notes what the window says."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.window = Window(NODES, limit_bytes=LIMIT_BYTES, timeout_seconds=1000.0)
        self.lines: list[str] = []
        self.told: list[str] = []
        self.acked = dict.fromkeys(NODES, 99)
        self.ends: list[int] = []
        self.down: dict[NodeName, str] = {}
        self.marks: list[asyncio.Task[SegmentEnd]] = []
        self.window.next = TxId(100)
        self.window.open(TxId(100), LAYOUT_VERSION)

    async def step(self) -> None:
        """Do one act, and record what can be seen then."""
        act, node = self.rng.choice(_ACTS), self.rng.choice(NODES)
        what = getattr(self, act)(node)
        for _ in range(3):
            await asyncio.sleep(0)
        if what:
            self.lines.append(f"{what}: {' '.join([*self._seen(), *self.told, *self._marked()])}")
            self.told.clear()

    def write(self, _node: NodeName) -> str:
        window, count = self.window, self.rng.choice((1, 1, 1, 2, 2, 3, 3, 8))
        first = window.next
        last = first + count - 1

        def ended(failure: JournalError | None) -> None:
            self.told.append(f"[{first}-{last} {'kept' if failure is None else failure}]")

        window.append(count, edits(first, last), ended)
        self.ends.append(last)
        return f"write {first}-{last}"

    def ack(self, node: NodeName) -> str:
        later = [last for last in self.ends if last > self.acked[node]]
        if not later or (self.down.get(node) == "down" and self.rng.random() < 0.8):
            return ""  # mostly; of one that is lost an answer may come all the same
        last = self.rng.choice(later[:3])
        self.acked[node] = last
        self.window.acked(node, TxId(last), self.window.seq_at(TxId(last + 1)))
        return f"{node} has {last}"

    def fail(self, node: NodeName) -> str:
        broken = self.rng.random() < 0.1
        self.down[node] = "down"
        self.window.failed(node, InvariantBroken("lost") if broken else DOWN)
        return f"{node} is {'broken' if broken else 'down'}"

    def back(self, node: NodeName) -> str:
        window, state = self.window, self.down.get(node)
        if state == "learns":
            del self.down[node]
            window.admitted(node, TxId(self.acked[node]))
            return f"{node} is admitted with {self.acked[node]}"
        if state is None or not window.covers(TxId(self.acked[node] + 1)):
            return ""
        seq, learns = window.seq_at(TxId(self.acked[node] + 1)), self.rng.random() < 0.4
        window.takes_part(node, seq, learner=LEARNS if learns else None)
        self.down.pop(node)
        if learns:
            self.down[node] = "learns"
        return f"{node} is back from {seq}{' and learns' if learns else ''}"

    def message(self, node: NodeName) -> str:
        window, first = self.window, TxId(self.acked[node] + 1)
        seq = window.seq_at(first)
        if self.down.get(node) == "down" or not window.holds(seq) or not window.covers(first):
            return ""
        most = self.rng.choice((1, 2, 3, 9)) * len(edit(100))
        found = window.message(seq, first, most)
        whole = found.records == edits(found.first, found.last)
        return (
            f"for {node} of {most}: {found.segment_first} {found.first}-{found.last} {found.seq}"
            f" {whole}"
        )

    def roll(self, _node: NodeName) -> str:
        window = self.window
        first = window.segment_first
        if window.committed < window.next - 1 or self.rng.random() < 0.3:
            return ""
        window.finish()
        layout = LAYOUT_VERSION if self.rng.random() < 0.5 else -66
        window.open(window.next, layout)
        for node in NODES:
            if self.acked[node] == window.next - 1 and self.down.get(node) != "down":
                window.takes_part(node, window.end_seq)
        return f"rolled from {first}"

    def mark(self, _node: NodeName) -> str:
        self.marks.append(asyncio.create_task(self.window.committed_mark()))
        return "a mark"

    def _marked(self) -> Iterator[str]:
        for task in [task for task in self.marks if task.done()]:
            self.marks.remove(task)
            failure = task.exception()
            mark = None if failure else task.result()
            yield (
                f"<{type(failure).__name__}>"
                if mark is None
                else (f"<{mark.first}-{mark.last} {mark.digest[:2].hex()} {mark.layout_version}>")
            )

    def _seen(self) -> Iterator[str]:
        window = self.window
        yield f"{window.committed}/{window.next} {window.end} {window.end_seq}"
        if window.layout_version != LAYOUT_VERSION:
            yield f"layout {window.layout_version}"
        if window.is_full:
            yield "full"
        covered = [txid for txid in range(90, window.next + 2) if window.covers(TxId(txid))]
        yield f"covers {covered[0]}-{covered[-1]}"
        for node in NODES:
            behind = "!" if window.too_far_behind(node, len(edit(100))) else ""
            yield f"{window.queued_bytes(node)}{behind}"
        holders = window.holders(TxId(window.next - 1))
        yield ",".join(node[0] for node in holders) or "-"


async def test_a_long_life_is_as_it_was_reviewed() -> None:
    rng, lines = Random(4), list[str]()
    for number in range(4):
        life = Life(rng)
        for _ in range(STEPS // 4):
            await life.step()
        life.window.close()
        async with asyncio.timeout(30):
            await asyncio.gather(*life.marks, return_exceptions=True)
        lines += [
            f"life {number}:",
            *life.lines,
            f"{sum(task.cancelled() for task in life.marks)} ended",
        ]
    same_as(Path(__file__).with_name("window.txt"), lines)
