"""The table of judgements, walked as a whole."""

from itertools import product
from typing import Final

import pytest

from namenode_sim.blocks.classify_replica import Circumstances, ReplicaVerdict, classify
from namenode_sim.blocks.model import BlockInfo, Reason, ReplicaState, Reported, Role, Stage

STAMP, LENGTH = 1005, 700

# A line for each state that is reported and each stage of the block; a column for the reported
# stamp (older, equal, newer) and the length (= as stored, # other).  T take, N note, I ignore;
# corrupt by the stamp G, the length S, the state X.
TABLE: Final = """
                               <=  <#  ==  =#  >=  >#
FINALIZED COMPLETE             G   G   T   S   G   G
FINALIZED COMMITTED            G   G   T   S   G   G
FINALIZED UNDER_CONSTRUCTION   G   G   N   N   N   N
FINALIZED UNDER_RECOVERY       N   N   N   N   N   N
RBW       COMPLETE             G   G   I   I   G   G
RBW       COMMITTED            G   G   N   N   N   N
RBW       UNDER_CONSTRUCTION   G   G   N   N   N   N
RBW       UNDER_RECOVERY       G   G   N   N   N   N
RWR       COMPLETE             G   G   X   X   G   G
RWR       COMMITTED            G   G   N   N   N   N
RWR       UNDER_CONSTRUCTION   G   G   N   N   N   N
RWR       UNDER_RECOVERY       G   G   N   N   N   N
RUR       COMPLETE             X   X   X   X   X   X
RUR       COMMITTED            X   X   X   X   X   X
RUR       UNDER_CONSTRUCTION   X   X   X   X   X   X
RUR       UNDER_RECOVERY       X   X   X   X   X   X
TEMPORARY COMPLETE             X   X   X   X   X   X
TEMPORARY COMMITTED            X   X   X   X   X   X
TEMPORARY UNDER_CONSTRUCTION   X   X   X   X   X   X
TEMPORARY UNDER_RECOVERY       X   X   X   X   X   X
"""

MEANS: Final[dict[str, ReplicaVerdict | Reason]] = {
    "T": ReplicaVerdict.TAKE,
    "N": ReplicaVerdict.NOTE,
    "I": ReplicaVerdict.IGNORE,
    "G": Reason.GENSTAMP_MISMATCH,
    "S": Reason.SIZE_MISMATCH,
    "X": Reason.INVALID_STATE,
}
STAMPS: Final = {"<": STAMP - 1, "=": STAMP, ">": STAMP + 1}
LENGTHS: Final = {"=": LENGTH, "#": LENGTH + 1}


def read_table() -> dict[tuple[ReplicaState, Stage, str], ReplicaVerdict | Reason]:
    """Every row of the table as a case."""
    heading, *lines = TABLE.strip("\n").splitlines()
    columns = heading.split()
    found = {}
    for line in lines:
        state, stage, *letters = line.split()
        for column, letter in zip(columns, letters, strict=True):
            found[ReplicaState[state], Stage[stage], column] = MEANS[letter]
    return found


CASES: Final = read_table()


def test_the_table_has_every_combination() -> None:
    columns = [stamp + length for stamp, length in product(STAMPS, LENGTHS)]
    assert set(CASES) == set(product(ReplicaState, Stage, columns))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
@pytest.mark.parametrize("from_future", [False, True], ids=["", "future"])
@pytest.mark.parametrize("invalidated", [False, True], ids=["", "invalidated"])
@pytest.mark.parametrize("superseded", [False, True], ids=["", "superseded"])
@pytest.mark.parametrize("starting", [False, True], ids=["", "starting"])
def test_every_report(
    role: Role, known: bool, from_future: bool, invalidated: bool, superseded: bool, starting: bool
) -> None:
    around = Circumstances(role, from_future, invalidated, superseded, starting)
    for (state, stage, column), written in CASES.items():
        stamp, length = STAMPS[column[0]], LENGTHS[column[1]]
        stored = BlockInfo(1, LENGTH, STAMP, 2, 3, stage) if known else None
        verdict = classify(stored, Reported(state, stamp, length), around)
        because = (state, stage, column)
        if role is Role.STANDBY and from_future:
            assert verdict is ReplicaVerdict.WAIT, because
        elif not known:
            deletes = role is Role.ACTIVE and not starting and not invalidated
            assert verdict is (ReplicaVerdict.INVALIDATE if deletes else ReplicaVerdict.IGNORE), (
                because
            )
        elif invalidated or (superseded and column[0] == "<"):
            assert verdict is ReplicaVerdict.IGNORE, because
        elif role is Role.STANDBY and isinstance(written, Reason):
            assert verdict is ReplicaVerdict.WAIT, because
        else:
            assert verdict is written, because
