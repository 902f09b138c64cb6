"""A core's transitions as text: what becomes of each of many states, and what is asked for.

The text lies next to the tests and is compared as a whole, so that no field of a state and no
action can change unseen.  ``NNHA_REWRITE=1`` writes it anew, to be reviewed as a diff.  What
changes nothing and asks for nothing has no line.
"""

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import unified_diff
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

S = TypeVar("S", bound=Hashable)
E = TypeVar("E")
Step = Callable[[S, E], tuple[S, tuple[object, ...]]]
"""From a state and an event to the next state, and what it asks for."""

_MOST_DIFFERENCES: Final = 40


@dataclass(frozen=True, slots=True)
class Text:
    """Values in one line; those that have a name are called by it."""

    names: Mapping[object, str] = field(default_factory=dict)

    def of(self, value: Any) -> str:  # noqa: ANN401 - one way for each kind of value
        """Return a value; of a dataclass the fields that are not as they begin."""
        if isinstance(value, Hashable) and _hashes(value) and value in self.names:
            return self.names[value]
        match value:
            case Enum():
                return value.name
            case Exception():
                return self._refusal(value)
            case bytes():
                return value.decode("latin-1") if len(value) < 9 else f"{value[:3].hex()}.."
            case float():
                return f"{value:g}"
            case tuple() | list():
                return f"[{', '.join(self.of(each) for each in value)}]"
            case frozenset() | set():
                return f"{{{', '.join(sorted(self.of(each) for each in value))}}}"
            case Mapping():
                pairs = (f"{self.of(key)}: {self.of(each)}" for key, each in value.items())
                return f"{{{', '.join(pairs)}}}"
            case _ if is_dataclass(value) and not isinstance(value, type):
                told = (
                    f"{each.name}={self.of(getattr(value, each.name))}"
                    for each in fields(value)
                    if getattr(value, each.name) != each.default
                )
                return f"{type(value).__name__}({', '.join(told)})"
            case _:
                return str(value)

    def _refusal(self, refusal: Exception) -> str:
        """Return its type and the facts that it carries; the words are for people."""
        facts = {name: value for name, value in vars(refusal).items() if value is not None}
        told = ", ".join(f"{name}={self.of(facts[name])}" for name in sorted(facts))
        return f"{type(refusal).__name__}({told})" if told else type(refusal).__name__

    def changes(self, before: object, after: object) -> str:
        """Return the fields that differ, as they are afterwards."""
        return ", ".join(self._changes(before, after, ""))

    def _changes(self, before: Any, after: Any, prefix: str) -> Iterator[str]:  # noqa: ANN401
        if not is_dataclass(after) or type(before) is not type(after):
            yield f"{prefix}{self.of(after)}"
            return
        for each in fields(after):
            old, new = getattr(before, each.name), getattr(after, each.name)
            if old == new:
                continue
            if is_dataclass(new) and type(new) is type(old) and not _named(new, self.names):
                yield from self._changes(old, new, f"{prefix}{each.name}.")
            else:
                yield f"{prefix}{each.name}={self.of(new)}"

    def step(self, state: S, event: E, step: Step[S, E]) -> tuple[S, str, str]:
        """Return the next state, what differs in it, and what is asked for or refused."""
        try:
            after, asked = step(state, event)
        except Exception as refusal:  # noqa: BLE001 - which it is belongs to the text, its words do not
            return state, "", f"raises {self._refusal(refusal)}"
        asks = " ".join(self.of(each) for each in asked)
        return after, "" if after == state else self.changes(state, after), asks


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _named(value: object, names: Mapping[object, str]) -> bool:
    return _hashes(value) and value in names


def explored(
    start: S,
    events: Callable[[S], Iterable[E]],
    step: Step[S, E],
    normal: Callable[[S], S],
    *,
    most: int,
) -> list[str]:
    """Return all states that are reached from this one, and all their transitions.

    ``normal`` puts numbers back that only count upwards, so that there is an end.

    Raises:
        AssertionError: there are more than ``most`` states.
    """
    text = Text()
    numbers = {normal(start): 1}
    waiting = deque(numbers)
    lines: list[str] = []
    while waiting:
        state = waiting.popleft()
        lines += ["", f"{numbers[state]}: {text.of(state)}"]
        for event in events(state):
            after, changes, asks = text.step(state, event, step)
            if not changes and not asks:
                continue
            to = normal(after)
            if to not in numbers:
                numbers[to] = len(numbers) + 1
                assert len(numbers) <= most, f"more than {most} states"
                waiting.append(to)
            counted = "" if to == after else f" {text.changes(to, after)}"
            lines.append(f"  {text.of(event)}: {numbers[to]}{counted} {asks}".rstrip())
    return lines[1:]


def crossed(
    states: Mapping[str, S],
    events: Mapping[str, E],
    step: Step[S, E],
    names: Mapping[object, str] | None = None,
) -> list[str]:
    """Return each of these events in each of these states, grouped by their outcomes."""
    text = Text(names or {})
    lines: list[str] = []
    for name, state in states.items():
        outcomes: dict[str, list[str]] = {}
        for what, event in events.items():
            _, changes, asks = text.step(state, event, step)
            if changes or asks:
                outcomes.setdefault(_outcome(changes, asks), []).append(what)
        lines += ["", f"{name}:"]
        lines += [f"  {'; '.join(whats)}: {outcome}" for outcome, whats in outcomes.items()]
    return lines[1:]


def _outcome(changes: str, asks: str) -> str:
    return f"{changes or '-'}{f' | {asks}' if asks else ''}"


def walked(
    state: S,
    events: Iterable[tuple[str, E]],
    step: Step[S, E],
    names: Mapping[object, str] | None = None,
) -> list[str]:
    """Return what each event changes, one after another."""
    text = Text(names or {})
    lines = []
    for what, event in events:
        state, changes, asks = text.step(state, event, step)
        if changes or asks:
            lines.append(f"{what}: {_outcome(changes, asks)}")
    return lines


def same_as(path: Path, lines: Sequence[str]) -> None:
    """Compare with what was written and reviewed; or write it.

    Raises:
        AssertionError: there are differences; the first ones are shown.
    """
    if os.environ.get("NNHA_REWRITE"):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    before = path.read_text(encoding="utf-8").splitlines()
    found = "\n".join(lines).splitlines()
    differences = list(unified_diff(before, found, "reviewed", "now", lineterm="", n=1))
    told = "\n".join(differences[:_MOST_DIFFERENCES])
    assert not differences, f"{path.name}, renewed by NNHA_REWRITE=1:\n{told}"
