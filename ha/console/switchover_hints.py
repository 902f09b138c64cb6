"""The steps of a hand-over as a ZKFC's status page shows them, and in words.  Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from ha.record import dataclass

MAX_NAME_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Steps:
    """How far a controller is."""

    asking: str = ""
    """The NameNode that is to hand over to this one's; empty when no hand-over is under way."""
    attempt: int | None = None
    """The number of the takeover that is under way, or of the last one; None: there was none."""
    done: tuple[tuple[str, float], ...] = ()
    """Its finished phases, and how long each took in seconds."""
    holds_lock: bool = False


def steps_of(page: Mapping[str, object]) -> Steps:
    """Read the steps from a status page; what is missing or malformed counts as absent."""
    asking = page.get("handing_over_from")
    takeover, last = page.get("takeover"), page.get("last_attempt")
    found = takeover if isinstance(takeover, dict) else last if isinstance(last, dict) else {}
    number, phases = found.get("number"), found.get("phases")
    return Steps(
        asking=asking if isinstance(asking, str) else "",
        attempt=number if type(number) is int else None,
        done=tuple(_phases(phases if isinstance(phases, list) else [])),
        holds_lock=page.get("elector") in ("active", "taking_over"),
    )


def new_lines(namenode: str, before: Steps | None, now: Steps, *, is_target: bool) -> Iterator[str]:
    """Yield what has happened between two looks at the page of this NameNode's controller.

    Without an earlier look it is unknown what is new, and nothing is yielded.
    """
    if before is None:
        return
    if not is_target:
        if before.holds_lock and not now.holds_lock:
            yield f"the zkfc of {namenode} has released the lock"
        return
    if now.asking and before.asking != now.asking:
        yield f"the zkfc of {namenode} asks the zkfc of {now.asking} to cede"
    seen = before.done if before.attempt == now.attempt else ()
    for phase, seconds in now.done[len(seen) :]:
        if phase != "active":  # the NameNode itself says that
            yield _in_words(namenode, phase, seconds)


def _in_words(namenode: str, phase: str, seconds: float) -> str:
    match phase:
        case "lock":
            return f"the zkfc of {namenode} has the lock"
        case "fenced":
            return f"the old active is fenced, after {seconds:.2f} s"
        case "promoting":
            return f"{namenode} is told to become active"
        case _:
            return f"the zkfc of {namenode}: {phase}, after {seconds:.2f} s"


def _phases(found: list[object]) -> Iterator[tuple[str, float]]:
    for one in found:
        if not isinstance(one, dict):
            continue
        name, seconds = one.get("name"), one.get("seconds")
        if isinstance(name, str) and isinstance(seconds, int | float):
            yield name[:MAX_NAME_CHARACTERS], float(seconds)
