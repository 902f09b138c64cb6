"""``nnha explain``: why the active is active, and which NameNode would be next."""

import click
from rich.text import Text

from ha.cli.explain.explanation import explain as explanation_of
from ha.cli.status.fsck import ask, lines_of, show_lines
from ha.cluster.daemon_queries import look_at
from ha.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.completion import namenode_ids
from ha.console.output import plain, show
from ha.console.result import Code, CommandOutcome, Ending
from ha.daemon import event_loop

LOOK_SECONDS = 2.0


@click.command()
@click.argument(
    "words", nargs=-1, metavar="[NODE | block ID | file PATH]", shell_complete=namenode_ids
)
@about_a_cluster("explain", timeout_seconds=LOOK_SECONDS)
def explain(*, place: ClusterCommand, words: tuple[str, ...]) -> None:
    """Say why the active NameNode is active, who would be next, and why not the others.

    With NODE, judges only that one.  With a block or a file: where the replicas are, why each
    counts or not, and why it is copied or deleted now, or not.  Exits 0; of a block or a file as
    fsck does where it is not found or not known.
    """
    match words:
        case ("block", name):
            return _show_blocks(place, blockId=name)
        case ("file", path):
            return _show_blocks(place, path=path, blocks="1", openforwrite="1")
        case () | (_,):
            return _explain_roles(place, words[0] if words else None)
        case _:
            raise click.UsageError("it takes a NODE, or block ID, or file PATH")


def _show_blocks(place: ClusterCommand, **asked: str) -> None:
    document = ask(place, "explain", **asked)
    show_lines(place, document, list(lines_of(document)) or ["it has no blocks"])


def _explain_roles(place: ClusterCommand, node: str | None) -> None:
    view = event_loop.run(
        look_at(place.configuration, place.nameservice, deadline_seconds=place.timeout_seconds)
    )
    if node is not None and view.namenode(node) is None:
        place.end(_no_such(node, view))
    found = explanation_of(view, only=node)
    text = Text("\n".join(plain(line) for line in found.as_lines()))
    show(place.output, found.as_json(), text)


def _no_such(node: str, view: ClusterView) -> Ending:
    names = ", ".join(row.namenode for row in view.namenodes)
    return Ending(
        "explain",
        CommandOutcome.REFUSED,
        Code.NO_SUCH_NODE,
        f"there is no NameNode {node} in {view.nameservice}: it has {names}",
        target=node,
    )
