"""The journal bench as pictures: how long a commit takes, and what more callers bring."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from tests.campaigns.bench.world import World

mpl.use("Agg")
_NAMES = {
    "ours": "nnha",
    "bare": "bare gRPC stream",
    "raw TCP": "raw TCP",
    "Hadoop": "Hadoop's writer and nodes",
    "mixed": "Hadoop's writer, our nodes",
}
_COLOURS = {
    "ours": "tab:blue",
    "bare": "tab:orange",
    "raw TCP": "tab:grey",
    "Hadoop": "tab:green",
    "mixed": "tab:olive",
}
_SHOWN_CALLERS = ("1", "256")
_SHARES = [share / 1000 for share in range(996)]
"""The last few of a thousand would make the axis ten times as long."""


def draw(world: World, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if world.latencies:
        _latency(world, folder / "journal-latency.png")
    if world.rates:
        _throughput(world, folder / "journal-throughput.png")


def _latency(world: World, path: Path) -> None:
    """Draw a panel for one caller and one for many; each line is one system's distribution."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 5), sharey=True)
    for axes, callers in zip(panels, _SHOWN_CALLERS, strict=True):
        systems = {
            who: sorted(seconds * 1000 for seconds in world.latencies[f"{who}, {callers}"])
            for who in _NAMES
            if world.latencies.get(f"{who}, {callers}")
        }
        for who, ordered in systems.items():
            took = [ordered[int(share * len(ordered))] for share in _SHARES]
            axes.plot(took, _SHARES, color=_COLOURS[who], label=_label(who, ordered))
        many = "one caller" if callers == "1" else f"{callers} callers"
        axes.set(xscale="log", xlabel="milliseconds", title=f"Commit of a 200-byte edit, {many}")
        axes.set_ylim(0, 1)
        _plain_numbers(axes.xaxis)
        axes.grid(visible=True, which="both", alpha=0.3)
        if systems:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=9)
    panels[0].set_ylabel("share of commits that were done by then")
    _save(figure, path)


def _label(who: str, ordered: Sequence[float]) -> str:
    p50, p99 = (ordered[int(share * len(ordered))] for share in (0.5, 0.99))
    return f"{_NAMES[who]}: p50 {p50:.2f}, p99 {p99:.2f}"


def _throughput(world: World, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for who, points in world.rates.items():
        callers, rates = zip(*sorted(points), strict=True)
        style = "o-" if len(points) > 1 else "D"
        axes.plot(callers, rates, style, color=_COLOURS[who], label=_NAMES[who])
    title = "Committed edits per second, 200 bytes each, three nodes"
    axes.set(xscale="log", yscale="log", xlabel="callers at the same time", title=title)
    ticks = sorted({callers for points in world.rates.values() for callers, _ in points})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    _plain_numbers(axes.yaxis)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    _save(figure, path)


def _plain_numbers(axis: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())


def _save(figure: Any, path: Path) -> None:  # noqa: ANN401 - matplotlib has no types here
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
