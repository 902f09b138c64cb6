"""The NameNode that is obeyed: every row of the rule, and what a restart remembers."""

from dataclasses import replace
from pathlib import Path

import pytest

from datanode.namenodes import claim
from datanode.namenodes.claim import decode, hear
from datanode.namenodes.claim_file import read_claims, write_claims
from tests.log_lines import captured

A, B = claim.NameNodeId("nn1"), claim.NameNodeId("nn2")
ACTIVE, STANDBY = claim.Said.ACTIVE, claim.Said.STANDBY
OBEYS_A = claim.Claims(highest=100, obeyed=A)
NOBODY = claim.Claims(highest=100)

#                                before   by  said     txid   after                    verdict
ROWS = {
    "nobody, newer": (NOBODY, A, ACTIVE, 101, claim.Claims(101, A), claim.ClaimEffect.OBEYED),
    "nobody, equal": (NOBODY, A, ACTIVE, 100, NOBODY, claim.ClaimEffect.STALE),
    "nobody, older": (NOBODY, A, ACTIVE, 99, NOBODY, claim.ClaimEffect.STALE),
    "the first": (claim.Claims(), A, ACTIVE, 0, claim.Claims(0, A), claim.ClaimEffect.OBEYED),
    "obeyed, any": (OBEYS_A, A, ACTIVE, 90, claim.Claims(90, A), claim.ClaimEffect.NOTHING_NEW),
    "another, newer": (OBEYS_A, B, ACTIVE, 101, claim.Claims(101, B), claim.ClaimEffect.OBEYED),
    "another, not newer": (OBEYS_A, B, ACTIVE, 100, OBEYS_A, claim.ClaimEffect.STALE),
    "obeyed steps down": (
        OBEYS_A, A, STANDBY, 100, replace(NOBODY, remembered=A), claim.ClaimEffect.OBEYED_NO_MORE),
    "another stands by": (OBEYS_A, B, STANDBY, 500, OBEYS_A, claim.ClaimEffect.NOTHING_NEW),
    "remembered, equal": (
        replace(NOBODY, remembered=A), A, ACTIVE, 100, OBEYS_A, claim.ClaimEffect.OBEYED),
    "remembered, older": (
        replace(NOBODY, remembered=A), A, ACTIVE, 99, replace(NOBODY, remembered=A),
        claim.ClaimEffect.STALE),
    "another than remembered, equal": (
        replace(NOBODY, remembered=A), B, ACTIVE, 100, replace(NOBODY, remembered=A),
        claim.ClaimEffect.STALE),
}  # fmt: skip


@pytest.mark.row("B29")
@pytest.mark.parametrize("row", ROWS)
def test_claims(row: str) -> None:
    before, who, said, txid, after, verdict = ROWS[row]
    assert hear(before, who, said, txid) == (after, verdict)


def test_a_restart_remembers_the_highest_claim(tmp_path: Path) -> None:
    one, two, broken = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for folder in (one, two, broken):
        folder.mkdir()
    write_claims([one], claim.Claims(90, B))
    write_claims([two], OBEYS_A)
    (broken / "nnha").mkdir()
    (broken / "nnha/claim").write_text("?")
    assert read_claims([one, two, broken, tmp_path]) == claim.Claims(100, remembered=A)
    assert read_claims([broken, tmp_path, two, one]) == claim.Claims(100, remembered=A)
    assert read_claims([]) == claim.Claims()
    assert decode(claim.encode(NOBODY)) == NOBODY


def test_a_volume_that_refuses_is_passed_over_and_named(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    (bad / "nnha/claim").mkdir(parents=True)
    with captured("datanode.") as logs:
        write_claims([bad, good], OBEYS_A)
        assert read_claims([bad, good]) == claim.Claims(100, remembered=A)
    assert [(line["event"], line["path"]) for line in logs] == [
        ("datanode.claim_not_written", str(bad / "nnha/claim")),
        ("datanode.claim_unreadable", str(bad / "nnha/claim")),
    ]
    assert (good / "nnha").stat().st_mode & 0o777 == 0o700


def test_an_active_that_was_without_its_lease_is_obeyed_again_before_its_next_edit() -> None:
    claims, _ = hear(OBEYS_A, A, STANDBY, 100)
    assert hear(claims, A, ACTIVE, 100) == (OBEYS_A, claim.ClaimEffect.OBEYED)
    assert hear(decode(claim.encode(claims)), A, ACTIVE, 100) == (OBEYS_A, claim.ClaimEffect.OBEYED)
