"""What fsck -storagepolicies adds: on which types of storage blocks lie, and if by their policy."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from namenode_sim.client_protocol.fsck.facts import Condition, FileFacts
from namenode_sim.datanodes.model import StorageType
from namenode_sim.datanodes.storage_policies import POLICIES, Types, policy_of
from namenode_sim.edits import values

Placement = tuple[int, Types]
"""The id of a file's policy, and the types of one block's replicas in Hadoop's order."""
_ORDER: Final = {kind: values.StorageType[kind.name] for kind in StorageType}


def placements(file: FileFacts) -> list[Placement]:
    """Return where each block lies that is not being written.

    Corrupt replicas count where there are no others, since then readers are led to them.
    """
    policy, found = policy_of(file.node).id, list[Placement]()
    for one in file.blocks:
        good = [each for each in one.replicas if each.condition is not Condition.CORRUPT]
        if one.judged is not None:
            found.append((policy, _sort(each.place[1].type for each in good or one.replicas)))
    return found


def policies_text(counted: "Counter[Placement]") -> str:
    """Return Hadoop's two tables (StoragePolicySummary), the most frequent placement first."""
    satisfied, broken = "", ""
    for (policy, kinds), number in counted.most_common():
        share = f"{number / counted.total():.4%}"
        actual = _policy_by(kinds)
        shown = ",".join(f"{kind.name}:{count}" for kind, count in Counter(kinds).items())
        shown += "" if actual is None else f"({POLICIES[actual].name})"
        if actual == policy:
            satisfied += f"{shown:<25} {number:>10}  {share:>20}\n"
        else:
            broken += f"{shown:<35} {POLICIES[policy].name:<20} {number:>10}  {share:>20}\n"
    if broken:
        broken = (
            "\nBlocks NOT satisfying the specified storage policy:\nStorage Policy"
            + f"{'':18}Specified Storage Policy      # of blocks       % of blocks\n{broken}"
        )
    return (
        "\nBlocks satisfying the specified storage policy:\nStorage Policy"
        f"{'':18}# of blocks       % of blocks\n{satisfied}"
        f"{broken or chr(10) + 'All blocks satisfy specified storage policy.' + chr(10)}"
    )


def _policy_by(kinds: Types) -> int | None:
    """Return the first policy, by id, that new replicas lie on these types by."""
    for policy in POLICIES.values():
        wanted = _sort(policy.creation)
        # The last in this order stands for more replicas, as Hadoop's summary has it.
        if kinds and kinds == (wanted + wanted[-1:] * len(kinds))[: max(len(wanted), len(kinds))]:
            return policy.id
    return None


def _sort(kinds: Iterable[StorageType]) -> Types:
    return tuple(sorted(kinds, key=_ORDER.__getitem__))
