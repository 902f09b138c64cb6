"""Decides what becomes of a NameNode's directories.

A file system is founded only where nothing is anywhere, and never where something is not known. A
NameNode that finds its own unfinished founding goes on with it, as long as the journal is unused.

See docs/reference/namenode.md#prepare.

Pure.
"""

from collections.abc import Collection, Mapping
from typing import Final

from journal.model import NamespaceInfo
from namenode_sim.startup.prepare import model

BY_HAND: Final = (
    "If no NameNode has an image of it, and it may be given up: nnha namenode --format --force, "
    "with all NameNodes stopped."
)

Identity = tuple[int, str]


def identity(namespace: NamespaceInfo) -> Identity:
    return namespace.namespace_id, namespace.cluster_id


def decide(seen: model.Seen, *, may_found: bool) -> model.Deed:
    """Decide what to do now.

    ``may_found``: this NameNode may found a file system where there is none.
    """
    owners = _owners(seen)
    identities = {identity(one) for one in owners.values()}
    if len(identities) > 1:
        shown = "; ".join(f"{who} has cluster {one.cluster_id}" for who, one in owners.items())
        return model.Refuse(
            f"there are several file systems: {shown}. Point this NameNode at the JournalNodes of "
            "its own cluster, or move its name directories away to make it a standby"
        )
    whole = [one for one in seen.directories.values() if isinstance(one, model.Whole)]
    if _resumes(seen, identities):
        return _go_on(seen)
    if whole:
        return _here(seen)
    if halves := [name for name, one in seen.directories.items() if isinstance(one, model.Half)]:
        return model.Refuse(
            f"{', '.join(halves)} holds files but no VERSION: a file system that was damaged, or "
            "one whose making was not finished. Move it away if nothing in it is needed"
        )
    if any(isinstance(one, model.Serving) for one in seen.peers.values()):
        return model.Bootstrap()
    return _without_serving_peer(seen, owners, may_found=may_found)


def _owners(seen: model.Seen) -> Mapping[str, NamespaceInfo]:
    """Return the file system of each directory, node and peer that has one."""
    everybody = {**seen.directories, **seen.journal, **seen.peers}
    return {
        who: one.namespace
        for who, one in everybody.items()
        if isinstance(one, model.Whole | model.Formatted | model.Serving)
    }


def _resumes(seen: model.Seen, identities: Collection[Identity]) -> bool:
    """Return whether what is there comes from our own founding that was cut short."""
    if seen.begun is None or all(isinstance(one, model.Whole) for one in seen.directories.values()):
        return False
    return identity(seen.begun) in identities


def _go_on(seen: model.Seen) -> model.Deed:
    if silent := _unclear(seen.journal):
        return model.Wait(f"a founding that was cut short needs all JournalNodes: {silent}")
    if any(isinstance(one, model.Formatted) and one.used for one in seen.journal.values()):
        return model.Refuse(
            "the founding here was cut short, but the journal that it made has been written to. "
            f"{BY_HAND}"
        )
    return model.Found(seen.begun)


def _here(seen: model.Seen) -> model.Deed:
    if all(isinstance(one, model.Unformatted) for one in seen.journal.values()):
        return model.Refuse(
            "there is an image here, and no JournalNode has a journal. To give them the edits that "
            "are here: nnha namenode --initialize-shared-edits"
        )
    return model.Ready()


def _without_serving_peer(
    seen: model.Seen, owners: Mapping[str, NamespaceInfo], *, may_found: bool
) -> model.Deed:
    silent = _unclear({**seen.journal, **seen.peers})
    if owners:
        who, namespace = next(iter(owners.items()))
        missing = silent or f"{', '.join(seen.peers) or 'no other NameNode'} does not run"
        return model.Wait(
            f"{who} has the journal of cluster {namespace.cluster_id}, and no NameNode answers "
            f"that has its image: {missing}. Start that one. {BY_HAND}"
        )
    if silent:
        return model.Wait(f"it is not known whether there is a file system: {silent}")
    if not may_found:
        return model.Wait(
            "there is no file system anywhere, and this NameNode may not found one. One NameNode "
            "of the nameservice must be given --found"
        )
    return model.Found(seen.begun)


def _unclear(nodes: Mapping[str, object]) -> str:
    """Return the nodes whose state is unknown, and why; empty where there is no doubt."""
    return "; ".join(
        f"{who}: {one.reason}" for who, one in nodes.items() if isinstance(one, model.Unclear)
    )
