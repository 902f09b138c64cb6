"""Random lives of one journal against a model that keeps its own books.

See docs/reference/invariants.md#journal.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings, stateful
from hypothesis import strategies as st

from journal import errors
from journal.core import requests
from journal.core.effects import Effect, PersistPromise
from journal.core.machine import step
from journal.core.replies import Prepared, Promised, Reply
from journal.core.state import JournalState
from journal.errors import StorageFailed
from journal.model import Epoch, Segment, TxId
from tests.journal.core import requests_of
from tests.journal.core.requests_of import digest

ROOT = Path("/journals/ns1")
Forge = Callable[[JournalState, requests.Request], requests.Request]
Lose = Callable[[Effect], bool]


@dataclass(slots=True)
class Bug:
    """A planted mistake: requests bent before they are judged, or effects that never happen."""

    forge: Forge = lambda _state, request: request
    loses: Lose = lambda _effect: False


@dataclass(slots=True)
class Held:
    """What the model knows of a segment: the writer of each of its edits."""

    tags: list[int]
    finalized: bool = False

    def digest(self, first: int) -> bytes:
        assert len(set(self.tags)) == 1
        return digest(first, first + len(self.tags) - 1, self.tags[0])


@dataclass(slots=True)
class Model:
    """The books: promises, and every edit that was acknowledged, as plain lists."""

    promised: int = 0
    writer: int = 0
    open: int | None = None
    segments: dict[int, Held] = field(default_factory=dict)
    decided: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # end, tag, epoch

    def hear(self, epoch: int) -> bool:
        """Take a request of that epoch; return False if it must be fenced."""
        if epoch < self.promised:
            return False
        if epoch > self.promised:
            self.promised = epoch
            self.close()
        return True

    def close(self) -> None:
        if self.open is not None and not self.segments[self.open].tags:
            del self.segments[self.open]
        self.open = None

    def end(self, first: int) -> int:
        return first + len(self.segments[first].tags) - 1

    def frontier(self) -> int:
        return max((self.end(first) for first in self.segments), default=0) + 1


class JournalLife(stateful.RuleBasedStateMachine):
    """One journal, several writers, crashes and power cuts."""

    bug = Bug()

    def __init__(self) -> None:
        super().__init__()
        self.files = requests_of.MemoryFiles()
        self.journal = requests_of.LocalJournal(ROOT, self.files)
        self.model = Model()
        self.serial = 0

    @stateful.initialize()
    def format(self) -> None:
        assert not isinstance(
            self.ask(requests.Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE)),
            errors.JournalError,
        )

    def ask(self, request: requests.Request) -> Reply | errors.JournalError:
        journal = self.journal
        journal.state = requests_of.with_digest(journal.state, request, journal.disk.digest)
        forged = self.bug.forge(journal.state, request)
        try:
            result = step(journal.state, forged)
        except errors.JournalError as refusal:
            return refusal
        journal.disk.run([e for e in result.effects if not self.bug.loses(e)])
        journal.state = result.state
        return result.reply

    def stamp(self, epoch: int) -> requests.Stamp:
        self.serial += 1
        return requests.Stamp(Epoch(epoch), self.serial)

    def epoch(self, age: int) -> int:
        return max(1, self.model.promised - age)

    @stateful.rule(age=st.integers(-2, 2))
    def new_epoch(self, age: int) -> None:
        epoch = self.epoch(age)
        reply = self.ask(requests_of.Writer(epoch).new_epoch())
        if epoch <= self.model.promised:
            assert isinstance(reply, errors.Fenced)
            assert reply.promised == self.model.promised
            return
        assert self.model.hear(epoch)
        assert reply == Promised(max(map(TxId, self.model.segments), default=None))

    @stateful.rule(age=st.sampled_from([-1, 0, 0, 0, 1]), back=st.sampled_from([0, 0, 0, 1, 2, 4]))
    def start(self, age: int, back: int) -> None:
        epoch, first = self.epoch(age), max(1, self.model.frontier() - back)
        reply = self.ask(replace(requests_of.Writer(epoch).start(first), stamp=self.stamp(epoch)))
        if not self.model.hear(epoch):
            assert isinstance(reply, errors.Fenced)
            return
        still_open = self.model.open == first
        self.model.close()
        lies = self.model.segments.get(first)
        inside = any(
            held.finalized and at <= first <= self.model.end(at)
            for at, held in self.model.segments.items()
        )
        left = lies is not None and epoch == self.model.writer and not still_open
        if inside or left or (lies is not None and len(lies.tags) != 1):
            assert isinstance(reply, errors.OutOfSync)
            return
        assert not isinstance(reply, errors.JournalError)
        self.model.decided.pop(first, None)
        self.model.segments[first] = Held([])
        self.model.writer, self.model.open = epoch, first

    @stateful.rule(
        age=st.sampled_from([-1, 0, 0, 0, 0, 1]),
        skip=st.sampled_from([0, 0, 0, 0, 1, -1]),
        count=st.integers(1, 3),
        damage=st.sampled_from([False, False, False, True]),
    )
    def write(self, age: int, skip: int, count: int, damage: bool) -> None:
        epoch, opened = self.epoch(age), self.model.open
        at = max(1, (1 if opened is None else self.model.end(opened) + 1) + skip)
        data = b"".join(requests_of.record(txid, epoch) for txid in range(at, at + count))
        data = data[:-1] + bytes([data[-1] ^ 1]) if damage else data
        begins = TxId(1 if opened is None else opened)
        reply = self.ask(requests.Journal(self.stamp(epoch), begins, TxId(at), count, data))
        if epoch > self.model.promised:
            assert isinstance(reply, errors.OutOfSync)  # it promises nothing
            return
        if not self.model.hear(epoch):
            assert isinstance(reply, errors.Fenced)
            return
        opened = self.model.open
        if epoch != self.model.writer or opened is None or at != self.model.end(opened) + 1:
            assert isinstance(reply, errors.OutOfSync)
        elif damage:
            assert isinstance(reply, errors.BadRequest)
        else:
            assert not isinstance(reply, errors.JournalError)
            self.model.segments[opened].tags += [epoch] * count

    @stateful.precondition(lambda self: self.model.segments)
    @stateful.rule(
        data=st.data(),
        age=st.sampled_from([0, 0, 0, 1]),
        off=st.sampled_from([0, 0, 0, 1, -1]),
        lie=st.sampled_from([False, False, True]),
    )
    def finalize(self, data: st.DataObject, age: int, off: int, lie: bool) -> None:
        epoch = self.epoch(age)
        first = data.draw(st.sampled_from(sorted(self.model.segments)))
        held = self.model.segments[first]
        last = self.model.end(first) + off
        if last < first:
            return
        content = b"\0" * 32 if lie or not held.tags else held.digest(first)
        reply = self.ask(
            requests.FinalizeLogSegment(self.stamp(epoch), TxId(first), TxId(last), content)
        )
        if epoch > self.model.promised:
            assert isinstance(reply, errors.OutOfSync)
            return
        if not self.model.hear(epoch):
            assert isinstance(reply, errors.Fenced)
            return
        if self.model.open == first:
            self.model.close()
        if first not in self.model.segments or off or lie:
            assert isinstance(reply, errors.OutOfSync | errors.BadRequest)
            return
        assert not isinstance(reply, errors.JournalError)
        held.finalized = True
        self.model.decided.pop(first, None)

    @stateful.precondition(lambda self: self.model.segments)
    @stateful.rule(data=st.data(), age=st.sampled_from([0, 0, -1, 1]))
    def prepare(self, data: st.DataObject, age: int) -> None:
        epoch = self.epoch(age)
        first = data.draw(st.sampled_from(sorted(self.model.segments)))
        reply = self.ask(requests.PrepareRecovery(self.stamp(epoch), TxId(first)))
        if not self.model.hear(epoch):
            assert isinstance(reply, errors.Fenced)
            return
        self.model.close()
        assert isinstance(reply, Prepared)
        assert reply.writer == self.model.writer
        held = self.model.segments.get(first)
        if held is None:
            assert reply.segment is None
            return
        assert reply.segment is not None
        assert reply.segment.last == self.model.end(first)
        assert reply.segment.digest == held.digest(first)
        decided = None if held.finalized else self.model.decided.get(first)
        accepted = reply.decision
        assert (None if accepted is None else accepted.epoch) == (decided and decided[2])

    @stateful.precondition(lambda self: self.model.promised)
    @stateful.rule(data=st.data(), age=st.sampled_from([0, 0, 0, 1]), count=st.integers(1, 3))
    def accept(self, data: st.DataObject, age: int, count: int) -> None:
        epoch = self.epoch(age)
        first = data.draw(st.sampled_from([*sorted(self.model.segments), self.model.frontier()]))
        held = self.model.segments.get(first)
        tags = sorted({tag for h in self.model.segments.values() for tag in h.tags} | {99})
        tag = data.draw(st.sampled_from(tags))
        decided = requests_of.segment(first, first + count - 1, tag)
        writer = requests_of.Writer(epoch, self.serial)
        self.serial += 1
        fenced = epoch < self.model.promised
        try:
            self.journal.accept(
                writer, decided, requests_of.segment_bytes(first, decided.last, tag)
            )
        except errors.JournalError as refusal:
            self._check_accept_refused(refusal, fenced, held, decided)
            return
        assert not fenced
        assert self.model.hear(epoch)
        self.model.close()
        if held is None or not held.finalized:
            self.model.segments[first] = Held([tag] * count)
        self.model.decided[first] = (decided.last, tag, epoch)

    def _check_accept_refused(
        self, refusal: errors.JournalError, fenced: bool, held: Held | None, decided: Segment
    ) -> None:
        if fenced:
            assert isinstance(refusal, errors.Fenced)
            return
        assert isinstance(refusal, errors.InvariantBroken)
        self.model.close()
        overlaps = any(
            h.finalized
            and at != decided.first
            and at <= decided.last
            and decided.first <= self.model.end(at)
            for at, h in self.model.segments.items()
        )
        forks = held is not None and held.finalized and held.digest(decided.first) != decided.digest
        assert overlaps or forks, refusal

    @stateful.rule(age=st.sampled_from([0, 1, -1]))
    def heartbeat(self, age: int) -> None:
        epoch = self.epoch(age)
        reply = self.ask(requests.Heartbeat(self.stamp(epoch)))
        if epoch > self.model.promised:
            assert isinstance(reply, errors.OutOfSync)
            return
        assert isinstance(reply, errors.Fenced) != self.model.hear(epoch)

    @stateful.rule(seed=st.integers(0, 5))
    def crash(self, seed: int) -> None:
        chance = random.Random(seed)
        survives = {0: lambda: False, 1: lambda: True}
        self.files.cut_power(survives.get(seed, lambda: chance.random() < 0.5))
        self.journal = requests_of.LocalJournal(ROOT, self.files)
        self.model.close()
        self.serial = 0

    @stateful.invariant()
    def the_books_agree(self) -> None:
        state = self.journal.state
        assert (state.promised, state.writer) == (self.model.promised, self.model.writer)
        lies = dict(state.segments)
        if state.open is not None:
            lies[state.open.first] = state.open.as_segment()
        ends = {first: self.model.end(first) for first in self.model.segments}
        assert {first: held.last for first, held in lies.items()} == ends
        for first, held in lies.items():
            assert held.finalized == self.model.segments[first].finalized
        names = [n for n in self.files.names(ROOT / "current") if n.startswith("edits_")]
        live = [n for n in names if not n.endswith((".empty", ".stale", ".corrupt"))]
        assert len(live) == len(lies), f"not one live file per segment: {live}"


SETTINGS = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    print_blob=False,
)


def test_random_lives_keep_the_books() -> None:
    stateful.run_state_machine_as_test(JournalLife, settings=SETTINGS)


def _obey_everybody(state: JournalState, request: requests.Request) -> requests.Request:
    if (
        isinstance(request, requests.Journal | requests.Heartbeat)
        and request.stamp.epoch < state.promised
    ):
        return replace(request, stamp=replace(request.stamp, epoch=state.promised))
    return request


def _believe_any_digest(state: JournalState, request: requests.Request) -> requests.Request:
    if isinstance(request, requests.FinalizeLogSegment) and request.digest == b"\0" * 32:
        held = state.find(request.first)
        opened = state.open.digest if state.open and state.open.first == request.first else b""
        return replace(request, digest=(held.digest if held else opened) or request.digest)
    return request


BUGS = {
    "a stale epoch is accepted": Bug(forge=_obey_everybody),
    "the promise is forgotten in a crash": Bug(loses=lambda e: isinstance(e, PersistPromise)),
    "finalize skips the digest": Bug(forge=_believe_any_digest),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=list(BUGS))
def test_the_books_show_a_planted_bug(bug: Bug) -> None:
    """Find the bug by the books or by the node itself.

    A node whose promise is older than what it wrote does not start.
    """
    broken = type("BrokenLife", (JournalLife,), {"bug": bug})
    # It stops at the first that shows it; of 80 none did in one run of six.
    quick = settings(SETTINGS, phases=[Phase.generate], max_examples=800)
    with pytest.raises((AssertionError, ExceptionGroup, StorageFailed)):
        stateful.run_state_machine_as_test(broken, settings=quick)
