"""The planted bugs of blocks and DataNodes: each must be seen by some world."""

from typing import Final

from tests.simulation.blocks import planted_datanode as datanode
from tests.simulation.blocks import planted_namenode as namenode
from tests.simulation.engine.mutants import Mutant, Planting

MOST_SEEDS: Final = 2_000
_TESTS: Final = "tests/namenode_sim/"
_REPLICAS: Final = "tests/datanode/test_replica.py::test_stamps_and_lengths"
_UNLEASED: Final = namenode.lease_not_asked()
"""The read lease alone keeps the claims of a former active from DataNodes."""


def _bug(
    name: str,
    plant: Planting,
    *,
    beside: Planting | None = None,
    killer: str = "",
    why: str = "",
) -> Mutant:
    return Mutant(name, plant, MOST_SEEDS, killer, why, beside)


MUTANTS: Final = (
    # ---- NameNodes ----
    _bug("storages stay confirmed over a takeover", namenode.confirmed_over_activation()),
    _bug("any report confirms", namenode.any_report_confirms()),
    _bug("unconfirmed storages count for excess", namenode.unconfirmed_counts()),
    _bug("orders outlive their term", namenode.orders_outlive_terms()),
    _bug("orders leave before their edits", namenode.orders_before_their_edits()),
    _bug("a claim is what is written", namenode.claims_what_is_written()),
    _bug("a standby drops reports from the future", namenode.waiting_forgotten()),
    _bug("the oldest report waits", namenode.oldest_waits()),
    _bug("a late stamp makes the new replica corrupt", namenode.late_stamp_is_corrupt()),
    _bug(
        "a full report undoes newer news",
        namenode.report_undoes_news(),
        killer=_TESTS + "blocks/test_reports.py::"
        "test_a_full_report_does_not_undo_what_came_after_it_was_made",
        why=(
            "DataNodes tell one thing after another, and one whose report was held up is asked "
            "for another at once"
        ),
    ),
    _bug("replicas of an old stamp stay", namenode.old_stamps_stay()),
    _bug("a repeated addBlock gets another block", namenode.retry_is_a_new_block()),
    _bug("a repeated addBlock gets no place", namenode.retry_has_no_place()),
    _bug("a stamp is told and not logged", namenode.stamp_not_logged()),
    _bug("any recovery commits", namenode.any_recovery_commits()),
    _bug(
        "who registers again is trusted",
        namenode.registration_keeps_trust(),
        killer=_TESTS + "datanodes/test_registry.py::"
        "test_one_that_comes_again_keeps_its_replicas_but_proves_nothing",
        why="its report follows within seconds, and what its disks lost meanwhile is excused",
    ),
    _bug("who has not registered is dead", namenode.unregistered_are_dead()),
    _bug("a sleep of its own makes DataNodes dead", namenode.dead_after_a_sleep()),
    _bug("safe mode waits for open blocks", namenode.safe_mode_counts_all()),
    _bug(
        "a file is closed without its replicas",
        namenode.closed_uncounted(),
        killer=_TESTS + "client_protocol/test_block_writes.py::"
        "test_a_file_closes_once_enough_replicas_are_reported",
        why="simulated writers wait for the end of every replica before they close a file",
    ),
    _bug("a storage's list is out of order", namenode.list_out_of_order()),
    # ---- DataNodes ----
    _bug("the claim is looked at too early", datanode.claim_looked_at_too_early()),
    _bug("an order of an earlier term is carried out", datanode.earlier_terms_count()),
    _bug("a claim is forgotten over a restart", datanode.claim_forgotten(), beside=_UNLEASED),
    _bug("the newest word is obeyed", datanode.newest_word_obeyed(), beside=_UNLEASED),
    _bug("stepping down forgets who was obeyed", datanode.stepping_down_forgets()),
    _bug("a replica is deleted whatever its stamp", datanode.any_stamp_deleted()),
    _bug("replicas of all states take part", datanode.all_states_take_part()),
    _bug(
        "replicas of old stamps take part",
        datanode.old_stamps_take_part(),
        killer=_REPLICAS + "[recovery: the replica is older]",
        why="a NameNode sends only to DataNodes whose replica has the block's stamp",
    ),
    _bug(
        "an end of any recovery counts",
        datanode.recovery_ends_any(),
        killer=_REPLICAS + "[end: another recovery]",
        why="the NameNode does not take the result, and the next recovery puts all right",
    ),
    _bug(
        "a recovery takes the longest replica",
        datanode.longest_taken(),
        killer="tests/datanode/test_agreement.py::"
        "test_b25_agreements[the shortest of the open ones]",
        why="what was not acknowledged was written all the same: its bytes are the right ones",
    ),
    _bug("a packet is acknowledged before it is written", datanode.acked_before_written()),
    _bug("an error farther down is an acknowledgement", datanode.errors_acknowledged()),
    _bug("a block's end is acknowledged before it is final", datanode.acked_before_final()),
)
