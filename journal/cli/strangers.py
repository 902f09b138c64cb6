"""Which JournalNodes keep the journal of another file system, and which votes count.  Pure."""

from collections import Counter
from collections.abc import Mapping

from journal.errors import JournalError
from journal.model import NodeName
from journal.proto import journal_pb2 as pb

Answers = Mapping[NodeName, pb.JournalStatus | JournalError]


def strangers(answers: Answers) -> dict[NodeName, str]:
    """Return each node whose journal is of another file system than the others', and the sentence.

    Voters outweigh learners.  Where two file systems have equally many nodes, none is a stranger.
    """
    spaces = {
        node: (answer.namespace_info.cluster_id, answer.namespace_info.namespace_id)
        for node, answer in answers.items()
        if not isinstance(answer, JournalError) and answer.HasField("namespace_info")
    }
    votes, nodes = Counter(spaces[node] for node in voters(answers)), Counter(spaces.values())
    ranked = sorted(nodes, key=lambda space: (votes[space], nodes[space]), reverse=True)
    weights = [(votes[space], nodes[space]) for space in ranked]
    if len(ranked) < 2 or weights[0] == weights[1]:
        return {}
    ours = ranked[0]
    return {
        node: f"a stranger: it keeps the journal of cluster {space[0]} (namespace {space[1]}), the "
        f"others that of {ours[0]} (namespace {ours[1]}), and takes no part here → give it its own "
        f"folder of this cluster (dfs.journalnode.edits.dir), or nnha journal format --node {node}"
        for node, space in spaces.items()
        if space != ours
    }


def voters(answers: Answers) -> list[NodeName]:
    """Return the nodes that serve a journal and have a vote in it."""
    return [
        node
        for node, answer in answers.items()
        if not isinstance(answer, JournalError)
        and answer.is_formatted
        and not answer.HasField("failed_because")
        and not answer.is_learner
    ]


def own(answers: Answers) -> Answers:
    """Return the answers without those of strangers."""
    others = strangers(answers)
    return {node: answer for node, answer in answers.items() if node not in others}


def lacks_founders(answers: Answers) -> bool:
    """Return whether all nodes answer and are learners: no writer can ever admit one."""
    told = [answer for answer in answers.values() if not isinstance(answer, JournalError)]
    return (
        len(told) == len(answers) > 0
        and all(answer.is_formatted and answer.is_learner for answer in told)
        and not strangers(answers)
    )
