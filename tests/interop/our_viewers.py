"""Our own offline viewers, run as a user runs them."""

from pathlib import Path

from click.testing import CliRunner

from namenode_sim.oev.command import oev
from namenode_sim.oiv.command import oiv


def our_oev(source: Path, target: Path, processor: str) -> None:
    """``nnha oev``."""
    done = CliRunner().invoke(oev, ["-i", str(source), "-o", str(target), "-p", processor])
    assert done.exit_code == 0, done.output


def our_oiv(image: Path, target: Path, processor: str, *options: str) -> str:
    """``nnha oiv``; returns what it wrote."""
    arguments = ["-i", str(image), "-o", str(target), "-p", processor, *options]
    done = CliRunner().invoke(oiv, arguments)
    assert done.exit_code == 0, done.output
    return target.read_bytes().decode()
