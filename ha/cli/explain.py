"""``nnha explain``: why things are as they are, and who would become active next."""

import asyncio

import click
from rich.text import Text

from ha.cli.asking import look_at
from ha.cli.cluster_view import ClusterView
from ha.cli.completion import namenode_ids
from ha.cli.ending import Code, Ending, Outcome
from ha.cli.explanation import explain as explanation_of
from ha.cli.output import plain, show
from ha.cli.place import Place, about_a_cluster
from ha.cli.quiet import silence_libraries

LOOK_SECONDS = 2.0


@click.command()
@click.argument("node", required=False, shell_complete=namenode_ids)
@about_a_cluster("explain")
def explain(*, place: Place, node: str | None) -> None:
    """Say why the active NameNode is active, who would be next, and why not each other.

    With NODE, only that one is judged.  Exits 0 whatever is found.
    """
    silence_libraries()
    view = asyncio.run(
        look_at(place.configuration, place.nameservice, deadline_seconds=LOOK_SECONDS)
    )
    if node is not None and view.namenode(node) is None:
        place.end(_no_such(node, view))
    found = explanation_of(view, only=node)
    text = Text("\n".join(plain(line) for line in found.as_lines()))
    show(place.output, found.as_json(), text)


def _no_such(node: str, view: ClusterView) -> Ending:
    names = ", ".join(row.namenode for row in view.namenodes)
    return Ending(
        command="explain",
        outcome=Outcome.REFUSED,
        code=Code.NO_SUCH_NODE,
        message=f"there is no NameNode {node} in {view.nameservice}: it has {names}",
        target=node,
    )
