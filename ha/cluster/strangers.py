"""JournalNodes that keep the journal of another cluster.  Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ha.cluster.view import JournalNodeRow


def mark_strangers(rows: Sequence[JournalNodeRow]) -> tuple[JournalNodeRow, ...]:
    """Return the rows, each with why it is a stranger where its cluster is not the others'.

    Voters outweigh learners.  Where two clusters have equally many nodes, none is a stranger.
    """
    nodes = Counter(row.cluster_id for row in rows if row.cluster_id is not None)
    votes = Counter(row.cluster_id for row in rows if row.learner is False)
    ranked = sorted(nodes, key=lambda cluster: (votes[cluster], nodes[cluster]), reverse=True)
    weights = [(votes[cluster], nodes[cluster]) for cluster in ranked]
    if len(ranked) < 2 or weights[0] == weights[1]:
        return tuple(rows)
    return tuple(
        replace(row, stranger=_sentence(row, ranked[0]))
        if row.cluster_id not in (None, ranked[0])
        else row
        for row in rows
    )


def _sentence(row: JournalNodeRow, ours: str) -> str:
    return (
        f"a stranger: it keeps the journal of cluster {row.cluster_id}, the others that of {ours}, "
        "and takes no part here → give it its own folder of this cluster "
        f"(dfs.journalnode.edits.dir), or nnha journal format --node {row.node}"
    )
