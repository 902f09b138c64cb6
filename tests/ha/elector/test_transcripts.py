"""Conversations with the elector as text; ``pytest tests/ha/elector --rewrite`` renews them."""

import re
from pathlib import Path

import pytest

from ha.elector import events
from ha.elector.core import step
from ha.elector.model import AttemptNumber, Breadcrumb, SessionNumber
from ha.elector.state import ElectorState

SCENARIOS = Path(__file__).parent / "scenarios"
FILES = sorted(SCENARIOS.glob("*.txt"))
SEPARATOR = "----"


def _event(line: str) -> events.Event:
    """``lock-seen 1 ours``: the class in kebab case, then its fields."""
    word, *rest = line.split()
    kind = getattr(events, "".join(part.capitalize() for part in word.split("-")))
    arguments: list[object] = []
    for field, text in zip(kind.__slots__, rest, strict=False):
        match field:
            case "session":
                arguments.append(SessionNumber(int(text)))
            case "attempt":
                arguments.append(AttemptNumber(int(text)))
            case "ours" | "keep_breadcrumb":
                arguments.append(text in ("ours", "keep"))
            case "breadcrumb":
                who, _, version = text.partition("@")
                crumb = None if text == "none" else Breadcrumb(who.encode(), int(version))
                arguments.append(crumb)
            case "data":
                arguments.append(text.encode())
            case "version":
                arguments.append(int(text))
            case _:
                arguments.append(text)
    made: events.Event = kind(*arguments)
    return made


def _shown(action: object) -> str:
    values = (getattr(action, name) for name in type(action).__slots__)  # type: ignore[attr-defined] # a slotted dataclass
    texts = (value.decode() if isinstance(value, bytes) else str(value) for value in values)
    return f"{type(action).__name__}({', '.join(texts)})"


def _play(text: str) -> str:
    """Return the scenario with every answer block written anew."""
    state = ElectorState()
    out: list[str] = []
    for block in text.strip().split("\n\n"):
        asked = block.split(f"\n{SEPARATOR}")[0].splitlines()
        answers = []
        for line in asked:
            if line.startswith("#"):
                continue
            before = state
            result = step(state, _event(line))
            state = result.state
            actions = " ".join(map(_shown, result.actions)) or "-"
            answers.append(f"{before.role.name} -> {state.role.name}: {actions}")
        out.append("\n".join([*asked, SEPARATOR, *answers]))
    return "\n\n".join(out) + "\n"


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 4


@pytest.mark.row(
    "W27", because="the transcript's time is given, so nothing depends on how fast the test runs"
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    played = _play(text)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(played)
        return
    assert re.sub(r"[ \t]+\n", "\n", text) == played
