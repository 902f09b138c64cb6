"""Our own offline viewers, run as a user runs them."""

from pathlib import Path

from click.testing import CliRunner

from namenode_sim.oev.command import oev


def our_oev(source: Path, target: Path, processor: str) -> None:
    """``nnha oev``."""
    done = CliRunner().invoke(oev, ["-i", str(source), "-o", str(target), "-p", processor])
    assert done.exit_code == 0, done.output
