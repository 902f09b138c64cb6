"""The failover bench as a picture: where the milliseconds go, next to Hadoop."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.campaigns.bench.failover_world import HAND_OVER, KILL
from tests.campaigns.bench.switches import HADOOP, Record, Switch, phases_of

mpl.use("Agg")

_OURS = {
    KILL: (f"{KILL}, journal-epoch", "NameNode killed"),
    HAND_OVER: (HAND_OVER, "hand-over asked for"),
}
_SHOWN = (HAND_OVER, f"{KILL}, journal-epoch")
"""Not sshfence: its login takes six times as long as all the rest."""

_MEANING = {
    "detected": "death noticed",
    "standby": "old one is standby",
    "released": "lock released",
    "lock": "lock taken",
    "fenced": "old one fenced",
    "promoting": "name written",
    "recovered": "journal recovered",
    "caught_up": "last edits applied",
    "active": "log opened: active",
}


def draw(record: Record, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), width_ratios=(5, 4))
    _phases(record, left)
    _beside_hadoop(record, right)
    figure.tight_layout()
    figure.savefig(folder / "failover.png", dpi=110)
    plt.close(figure)


def _phases(record: Record, axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
    """Draw one bar for each event; each piece ends when its phase was reported."""
    names = [name for name in _SHOWN if record.switches.get(name)]
    colours = dict(zip(_MEANING, plt.get_cmap("tab10").colors, strict=False))
    labelled: set[str] = set()
    for name in names:
        before = 0.0
        for phase, middle, _ in phases_of(record.switches[name]):
            label = "" if phase in labelled else _MEANING[phase]
            labelled.add(phase)
            axes.barh(
                name,
                (middle - before) * 1000,
                left=before * 1000,
                color=colours[phase],
                label=label,
            )
            before = middle
        axes.text(before * 1000, name, f" {before * 1000:.0f} ms", va="center")
    axes.set(
        title="nnha: from the cause to the other NameNode active", xlabel="milliseconds, median"
    )
    axes.margins(x=0.12)
    if labelled:
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=4, fontsize=8)


def _beside_hadoop(record: Record, axes: Any) -> None:  # noqa: ANN401
    """Draw medians on a logarithmic scale: the role, and a client's call at worst."""
    rows: list[tuple[str, float, str]] = []
    for kind, (ours, words) in _OURS.items():
        for who, name, colour in (
            ("Hadoop", f"{HADOOP}, {kind}", "tab:green"),
            ("nnha", ours, "tab:blue"),
        ):
            done = record.switches.get(name)
            if done:
                rows.append((f"{words}: {who}'s longest call", _call(done), colour))
                rows.append((f"{words}: {who} active", _active(done), colour))
    for label, seconds, colour in rows:
        axes.barh(label, seconds, color=colour, alpha=0.6 if "call" in label else 1)
        axes.text(seconds, label, f" {seconds:.2g} s", va="center")
    axes.set(xscale="log", title="default settings, medians", xlabel="seconds")
    axes.margins(x=0.2)


def _active(done: Sequence[Switch]) -> float:
    return statistics.median(one.active for one in done)


def _call(done: Sequence[Switch]) -> float:
    return statistics.median(one.client or 0.0 for one in done)
