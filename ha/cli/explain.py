"""``nnha explain``: why things are as they are, and who would become active next."""

import asyncio
from functools import partial

import click
from rich.text import Text

from ha.cli.asking import look_at
from ha.cli.cluster_view import ClusterView
from ha.cli.ending import Code, Ended, Ending, Outcome
from ha.cli.explanation import explain as explanation_of
from ha.cli.output import plain, show
from ha.cli.place import Place, about_a_cluster
from ha.cli.quiet import silence_libraries
from ha.cli.znode_visit import visit
from ha.conf import keys
from ha.notices.model import HistoryEntry
from ha.notices.store import read_history

LOOK_SECONDS = 2.0


@click.command()
@click.argument("node", required=False)
@about_a_cluster("explain")
def explain(*, place: Place, node: str | None) -> None:
    """Say why the active NameNode is active, who would be next, and why not each other.

    With NODE, only that one is judged.  Exits 0 whatever is found.
    """
    silence_libraries()
    view, entries = asyncio.run(_ask(place))
    if node is not None and view.namenode(node) is None:
        place.end(_no_such(node, view))
    found = explanation_of(view, entries, only=node)
    text = Text("\n".join(plain(line) for line in found.as_lines()))
    show(place.output, found.as_json(), text)


async def _ask(place: Place) -> tuple[ClusterView, tuple[HistoryEntry, ...]]:
    view = look_at(place.configuration, place.nameservice, deadline_seconds=LOOK_SECONDS)
    if not place.configuration.get(keys.AUTO_FAILOVER, nameservice=place.nameservice):
        return await view, ()
    found = await asyncio.gather(view, _history(place))
    return found[0], found[1]


async def _history(place: Place) -> tuple[HistoryEntry, ...]:
    """Empty where ZooKeeper does not answer: the look at it says why, and the rest still holds."""
    errand = partial(read_history, count=20)
    try:
        return await visit(place, "explain", errand, seconds=LOOK_SECONDS)
    except Ended:
        return ()


def _no_such(node: str, view: ClusterView) -> Ending:
    names = ", ".join(row.namenode for row in view.namenodes)
    return Ending(
        command="explain",
        outcome=Outcome.REFUSED,
        code=Code.NO_SUCH_NODE,
        message=f"there is no NameNode {node} in {view.nameservice}: it has {names}",
        target=node,
    )
