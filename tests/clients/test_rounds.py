"""The rounds of clients find what is lost or wrong, and go on where a call only fails."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.clients.rounds import Rounds, Wrong

ENTRIES = 3
ROUNDS = 12
"""More than the files that are kept, so that some are deleted."""


@dataclass(slots=True)
class InMemory:
    """Files that do what they are asked to, but where ``fault`` is named."""

    fault: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    calls: int = 0

    def write(self, path: str, data: bytes) -> None:
        self._unless("write", lambda: self.files.update({path: data}))

    def append(self, path: str, data: bytes) -> None:
        times = 2 if self.fault == "append twice" else 1

        def append() -> None:
            self.files[path] += data[: len(data) // 2] if self._is("half") else data * times

        self._unless("append", append)

    def read(self, path: str, offset: int, length: int) -> bytes:
        found = self.files[path][offset : offset + length]
        return found[:-1] + bytes([found[-1] ^ 1]) if self.fault == "flip" and found else found

    def length(self, path: str) -> int | None:
        return len(self.files[path]) if path in self.files else None

    def names(self, folder: str) -> list[str]:
        many = ENTRIES - (self.fault == "short")
        if folder == "/many":
            return [f"{number:06}" for number in range(many)]
        found = [path.rpartition("/")[2] for path in self.files]
        return found[:-1] if self.fault == "hide" else found

    def rename(self, source: str, target: str) -> None:
        def rename() -> None:
            self.files[target] = self.files.pop(source)

        if self.fault != "no rename":
            self._unless("rename", rename)

    def delete(self, path: str) -> None:
        if self.fault != "no deletion":
            self._unless("delete", lambda: self.files.pop(path))

    def _is(self, fault: str) -> bool:
        """Say whether a fault shows at this call: at each third of its kind."""
        self.calls += self.fault == fault
        return self.fault == fault and self.calls % 3 == 0

    def _unless(self, name: str, change: Callable[[], object]) -> None:
        """Fail before or behind a change, if that is the fault."""
        if self._is(f"{name} fails"):
            raise OSError(name)
        change()
        if self._is(f"{name} has no answer"):
            raise OSError(name)


def play(files: InMemory) -> Rounds:
    rounds = Rounds(files, (OSError,), "/mine", 1, "/many", ENTRIES, pause_seconds=0)
    for number in rounds.run():
        if number == ROUNDS:
            break
    rounds.check_all()
    return rounds


@pytest.mark.parametrize("call", ["write", "append", "rename", "delete"])
@pytest.mark.parametrize("how", ["fails", "has no answer"])
def test_a_call_that_fails_is_made_again_after_a_look(call: str, how: str) -> None:
    assert play(InMemory(f"{call} {how}")).failed


@pytest.mark.parametrize(
    "fault", ["append twice", "half", "flip", "short", "hide", "no rename", "no deletion"]
)
def test_what_is_lost_or_wrong_is_found(fault: str) -> None:
    with pytest.raises(Wrong):
        play(InMemory(fault))


def test_rounds_end_well_and_say_what_they_checked() -> None:
    rounds = play(InMemory())
    assert rounds.failed == []
    assert rounds.checked_bytes > 0
    assert "0 calls made again, 3 entries listed in" in rounds.summary()
