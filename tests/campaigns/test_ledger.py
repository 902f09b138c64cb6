"""The table of played worlds adds up over nights, by family and tree, and nothing else changes."""

from pathlib import Path

import pytest

from tests.campaigns import ledger, night

PAGE = night.LEDGER.read_text()
DAY = "2026-01-02"


def _figures(first: int, *broke: int) -> dict[str, object]:
    failures = [{"seed": seed, "why": "I1"} for seed in broke]
    return {"seeds": 1800, "first_seed": first, "failed": len(broke), "failures": failures}


def _command(line: str) -> str:
    return f"./run soak {line} --seeds 1800 --first-seed 5 --json"


def test_turns_of_a_family_and_tree_add_up(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    earlier = ledger.read(PAGE)
    for line, tree, broke in (
        ("journal", "aaa", (7,)),
        ("journal --aimed", "aaa", ()),
        ("journal", "aaa", (7, 8, 9, 10, 11, 12)),
        ("journal", "bbb", ()),
    ):
        new = ledger.lives_of(_command(line), _figures(5, *broke), tree, DAY)
        assert new is not None
        ledger.note(page, new)
    text = page.read_text()
    assert ledger.read(text) == [
        *earlier,
        ledger.Lives("journal", "aaa", 3600, 7, (7, 8, 9, 10, 11), DAY),
        ledger.Lives("journal --aimed", "aaa", 1800, 0, (), DAY),
        ledger.Lives("journal", "bbb", 1800, 0, (), DAY),
    ]
    assert "| `journal` | aaa | 3,600 | 7 (7, 8, 9, 10, 11) | 2026-01-02 |\n" in text
    assert ledger.written(text, earlier) == PAGE
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize(
    ("command", "figures", "tree"),
    [
        ("./run soak kill --count 20", {"rounds": 20}, "aaa"),
        ("./run test", {"passed": 1}, "aaa"),
        (_command("journal"), {}, "aaa"),
        (_command("journal"), _figures(5), None),
    ],
    ids=["no seeds", "no soak", "nothing printed", "a tree without a name"],
)
def test_what_counts_no_worlds_adds_nothing(
    command: str, figures: dict[str, object], tree: str | None
) -> None:
    assert ledger.lives_of(command, figures, tree, DAY) is None


def test_a_line_that_is_no_row_is_refused() -> None:
    row = ledger.Lives("journal", "aaa", 3600, 0, (), DAY)
    broken = ledger.written(PAGE, [row]).replace("| 3,600 | 0 |", "| 3,600 |")
    with pytest.raises(ValueError, match="is no row"):
        ledger.read(broken)


@pytest.mark.parametrize("turn", night.LIVES, ids=lambda turn: " ".join(turn.words))
def test_each_turn_of_worlds_has_a_row(turn: night.Turn) -> None:
    command = " ".join(["./run", *night.fresh(turn)])
    new = ledger.lives_of(command, _figures(5), "aaa", DAY)
    assert new is not None
    assert new.family == " ".join(turn.words[1:]).partition(" --seeds")[0]
