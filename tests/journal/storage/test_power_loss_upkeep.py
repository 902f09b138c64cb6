"""Power loss, the rest of it: rejoin, admission, purge, sync, upgrade, roll back and discard.

The same shim and replay as in test_power_loss, around a process that has a journal's core and
disk and no network; what a cut leaves is judged by the states before and after the act.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from journal.core.state import JournalState
from journal.model import NO_EPOCH, Segment
from tests.journal.core.requests_of import LocalJournal, digest
from tests.journal.storage.power_replay import Cut, Replay
from tests.journal.storage.test_crashes import _goes_on as goes_on
from tests.journal.storage.test_crashes import held
from tests.journal.storage.test_power_loss import (
    JID,
    PLANTS,
    Recorded,
    _same_inode,
    built_shim,
    lived,
    pytestmark,
)
from tests.journal.storage.upkeep_life import life

__all__ = ["pytestmark"]

_KEEPING = (
    "real = RealFiles.sync_folder\n"
    "RealFiles.sync_folder = lambda self, folder: None if {} else real(self, folder)"
)
UPKEEP_PLANTS = {
    **PLANTS,
    "what an upgrade keeps is not synced": _KEEPING.format('"previous" in str(folder)'),
    "no record of a segment is synced": _KEEPING.format('folder.name == "segments"'),
    "the steps of an upgrade are not synced": _KEEPING.format(f'folder.name == "{JID}"'),
}
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def record(folder: Path, plant: str = "pass") -> Recorded:
    shim, log, root, marks = built_shim(folder), folder / "log", folder / "jn", folder / "marks"
    root.mkdir()
    (root / JID).mkdir()
    log.touch()
    program = (
        "from journal.storage import files; from journal.storage.files import RealFiles\n"
        f"{plant}\n"
        "import sys; from pathlib import Path; from tests.journal.storage.upkeep_life import main\n"
        f"main(Path({str(root / JID)!r}), Path({str(log)!r}), Path({str(marks)!r}))"
    )
    return lived(program, shim, root, log, marks)


@pytest.fixture(scope="module")
def states() -> list[JournalState]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        journal = LocalJournal(Path(folder) / JID)
        found = [journal.state]
        for act in life():
            act(journal)
            found.append(journal.state)
        journal.close()
    return found


def check(before: JournalState, after: JournalState, found: LocalJournal) -> None:
    """Check that what lies there is the state before the act, after it, or on the way."""
    state = found.state
    if state.namespace is None:
        assert before.namespace is None, "lost its VERSION"
        return
    for name in ("namespace", "promised", "incarnation", "learner", "previous"):
        allowed = (getattr(before, name), getattr(after, name))
        assert getattr(state, name) in allowed, f"{name}: {getattr(state, name)}, not of {allowed}"
    assert not state.damaged
    old, new, now = held(before), held(after), held(state)
    for first in {*old, *new, *now}:
        was, becomes, lies = old.get(first), new.get(first), now.get(first)
        if lies is None:
            assert was is None or becomes is None or was.writer != becomes.writer, f"lost {first}"
            continue
        allowed_here = [one for one in (was, becomes) if one is not None]
        was_final = was is not None and was.finalized
        _check_segment(found.disk.digest(lies), allowed_here, was_final=was_final)


def _check_segment(lies: Segment, allowed: list[Segment], *, was_final: bool) -> None:
    assert allowed, f"{lies.name()} came from nowhere"
    ends = {(one.last, one.finalized) for one in allowed}
    shortest, longest = min(one.last for one in allowed), max(one.last for one in allowed)
    grown = not lies.finalized and shortest <= lies.last <= longest
    first_write = not lies.finalized and len(allowed) == 1 and lies.last <= longest
    assert (lies.last, lies.finalized) in ends or grown or first_write, lies
    writers = {one.writer for one in allowed}
    if lies.finalized and not was_final:
        writers.add(NO_EPOCH)  # what a peer has finalized gets its name first, then its record
    assert lies.writer in writers, f"{lies.name()} has lost its writer"
    assert any(lies.digest == digest(lies.first, lies.last, one.writer) for one in allowed), (
        f"{lies.name()} holds nobody's edits"
    )


def failures(
    recorded: Recorded, states: list[JournalState], cuts: tuple[Cut, ...]
) -> Iterator[str]:
    """Yield the cuts after which an answer was not kept, or the journal does not load."""
    replay = Replay(recorded.root)
    replay.apply(["mkdir", str(recorded.root / JID)])
    replay.apply(["syncdir", str(recorded.root)])
    for point, operation in enumerate(recorded.operations, start=1):
        replay.apply(operation)
        act = max(0, sum(at <= point for at in recorded.answered_at) - 1)
        before, after = states[act], states[min(act + 1, len(states) - 1)]
        for cut in cuts:
            name = f"{point} of {len(recorded.operations)} ({operation[0]}), act {act}, {cut}"
            with TemporaryDirectory(dir=MEMORY) as folder:
                try:
                    judge(replay, Path(folder), name, cut, before, after)
                except Exception as failure:  # noqa: BLE001 - whatever breaks is a finding
                    yield f"{name}: {failure!r}"


def judge(
    replay: Replay, place: Path, name: str, cut: Cut, before: JournalState, after: JournalState
) -> None:
    """Load what is left.

    Raises:
        AssertionError: something that was answered is not there.
    """
    replay.write_to(place, cut, Random(name))
    for folder in ("current", "previous", "previous.tmp", "removed.tmp", "finalized.tmp"):
        _same_inode(place / JID / folder / "incarnation")
    found = LocalJournal(place / JID)
    try:
        check(before, after, found)
        if not found.state.learner:
            goes_on(found)
    finally:
        found.close()


@pytest.mark.row("X7")
def test_x7_power_loss_after_any_operation_of_upkeep(
    tmp_path: Path, states: list[JournalState]
) -> None:
    recorded = record(tmp_path)
    assert len(recorded.answered_at) == len(states)
    assert len(recorded.operations) > 150, "the shim has recorded next to nothing"
    found = list(failures(recorded, states, tuple(Cut)))
    assert not found, f"{len(found)} cuts: {found[:5]}"


@pytest.mark.parametrize("plant", UPKEEP_PLANTS.values(), ids=UPKEEP_PLANTS.keys())
def test_a_forgotten_sync_of_upkeep_is_found(
    tmp_path: Path, states: list[JournalState], plant: str
) -> None:
    recorded = record(tmp_path, plant)
    assert next(failures(recorded, states, (Cut.NOTHING, Cut.NAMES)), None) is not None
