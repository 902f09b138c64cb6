"""The life of a journal that is mended, moved and upgraded, on real files: a process for the shim.

``python -m tests.journal.storage.upkeep_life ROOT LOG MARKS`` lives it and notes in MARKS how many
operations LOG had when each act was answered.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from journal.core import requests
from journal.core.replies import Fetch
from journal.errors import JournalError, NotAdmitted, OutOfSync
from journal.model import LAYOUT_VERSION, TxId
from tests.journal.core.requests_of import LIFE, NAMESPACE, LocalJournal, Writer, segment
from tests.journal.core.test_rejoin import download
from tests.journal.core.test_syncing import adopt, final

Act = Callable[[LocalJournal], object]
UPGRADED: Final = replace(NAMESPACE, ctime=77, layout_version=-67)
AGAIN: Final = replace(UPGRADED, ctime=88)


def resume(writer: Writer, first: int) -> Act:
    return lambda j: j.ask(requests.ResumeSegment(writer.stamp(), TxId(first), LAYOUT_VERSION))


def catch_up(writer: Writer, first: int, last: int) -> Act:
    def act(journal: LocalJournal) -> None:
        wanted = segment(first, last, writer.epoch)
        reply = journal.ask(requests.CatchUp(writer.stamp(), wanted, LAYOUT_VERSION))
        assert isinstance(reply, Fetch)
        journal.ask(download(journal, reply))

    return act


def refused(journal: LocalJournal, request: requests.Request, kind: type[JournalError]) -> None:
    try:
        journal.ask(request)
    except kind:
        return
    raise AssertionError(f"{request} was not refused")


def life() -> Iterator[Act]:
    """Feed and admit a learner, let it rejoin, purge, sync, upgrade and roll it back."""
    one, two, three, four = (Writer(epoch) for epoch in (1, 2, 3, 4))
    yield lambda j: j.ask(requests.Format(NAMESPACE, founding=False, incarnation=LIFE))
    yield resume(one, 1)
    yield lambda j: j.ask(one.batch(1, 1, 3))
    yield lambda j: refused(j, one.finalize(1, 1000), OutOfSync)  # it closes the segment
    yield resume(one, 1)
    yield lambda j: j.ask(one.batch(1, 4, 5))
    yield catch_up(one, 1, 8)
    yield lambda j: j.ask(one.batch(1, 9, 9))
    yield lambda j: refused(j, one.finalize(1, 9), NotAdmitted)  # done, but it has no vote
    yield lambda j: j.ask(requests.Admit(one.stamp(), LIFE, (final(1, 9),), TxId(9)))
    yield resume(one, 10)
    yield lambda j: j.ask(one.batch(10, 10, 10))
    yield resume(two, 10)  # an older writer's edits are void by now
    yield lambda j: j.ask(two.batch(10, 10, 12))
    yield lambda j: j.ask(two.finalize(10, 12))
    two.committed = 12
    yield lambda j: j.ask(requests.PurgeLogs(two.stamp(), TxId(10)))
    yield lambda j: adopt(j, final(13, 15, 2), 2)
    yield lambda j: j.ask(two.start(16))
    yield lambda j: j.ask(two.batch(16, 16, 16))
    yield lambda j: j.ask(three.new_epoch())
    yield lambda j: adopt(j, final(16, 18, 3), 3)
    three.committed = 18
    yield lambda j: j.ask(requests.PreUpgrade(three.stamp()))
    yield lambda j: j.ask(requests.Upgrade(three.stamp(), UPGRADED))
    yield lambda j: j.ask(three.start(19))
    yield lambda j: j.ask(three.batch(19, 19, 20))
    yield lambda j: j.ask(three.finalize(19, 20))
    yield lambda j: j.ask(requests.FinalizeUpgrade(three.stamp()))
    yield lambda j: j.ask(requests.PreUpgrade(three.stamp()))
    yield lambda j: j.ask(requests.Upgrade(three.stamp(), AGAIN))
    yield lambda j: j.ask(four.new_epoch())
    yield lambda j: j.ask(requests.RollBack(four.stamp()))
    yield lambda j: j.ask(requests.DiscardSegments(four.stamp(), TxId(16)))


def main(root: Path, log: Path, marks: Path) -> None:
    journal = LocalJournal(root)
    counted = [log.read_bytes().count(b"\n")]
    for act in life():
        act(journal)
        counted.append(log.read_bytes().count(b"\n"))
    marks.write_text(" ".join(map(str, counted)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
