"""The planted bugs of blocks and DataNodes: each must be seen by some world."""

from typing import Final

from tests.simulation.blocks import planted_datanode as datanode
from tests.simulation.blocks import planted_namenode as namenode
from tests.simulation.engine.mutants import Mutant, Planting

MOST_SEEDS: Final = 2_000


def _bug(name: str, plant: Planting) -> Mutant:
    return Mutant(name, plant, MOST_SEEDS)


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
    _bug("a full report undoes newer news", namenode.report_undoes_news()),
    _bug("replicas of an old stamp stay", namenode.old_stamps_stay()),
    _bug("a repeated addBlock gets another block", namenode.retry_is_a_new_block()),
    _bug("a repeated addBlock gets no place", namenode.retry_has_no_place()),
    _bug("a stamp is told and not logged", namenode.stamp_not_logged()),
    _bug("any recovery commits", namenode.any_recovery_commits()),
    _bug("who registers again is trusted", namenode.registration_keeps_trust()),
    # ---- DataNodes ----
    _bug("the claim is looked at too early", datanode.claim_looked_at_too_early()),
    _bug("a claim is forgotten over a restart", datanode.claim_forgotten()),
    _bug("the newest word is obeyed", datanode.newest_word_obeyed()),
    _bug("stepping down forgets who was obeyed", datanode.stepping_down_forgets()),
    _bug("a replica is deleted whatever its stamp", datanode.any_stamp_deleted()),
    _bug("replicas of all states take part", datanode.all_states_take_part()),
    _bug("replicas of old stamps take part", datanode.old_stamps_take_part()),
    _bug("an end of any recovery counts", datanode.recovery_ends_any()),
)
