"""``nnha checkpoint``: the group; its commands live with the engines that do the work."""

import click


@click.group()
def checkpoint() -> None:
    """Make newer images, and look into them, without a NameNode."""
