"""What becomes of files, directories and snapshots of them: histories, each with its outcome.

A line of histories.txt that begins at the margin is a history: edits, one after another.  Below it
stands what each edit lets go of, and what is there after each snapshot that is dropped and at the
end: the tree, what each snapshot shows, and how what only snapshots have is kept.
"""

from pathlib import Path

from tests.namenode_sim.namespace.snapshots.histories import told
from tests.transitions import same_as

TABLE = Path(__file__).with_name("histories.txt")


def histories() -> list[str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(" ")]


def test_what_is_there_after_each_history() -> None:
    lines = []
    for history in histories():
        lines += [history, *(f"    {line}" for line in told(history)), ""]
    same_as(TABLE, lines[:-1])
