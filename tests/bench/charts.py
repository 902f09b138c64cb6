"""The journal bench as pictures: how long a commit takes, and what more callers bring."""

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.bench.world import World

mpl.use("Agg")
_COLOURS = {"ours": "tab:blue", "bare": "tab:orange", "raw TCP": "tab:grey"}
_NAMES = {"ours": "nnha", "bare": "bare gRPC stream", "raw TCP": "raw TCP"}


def draw(world: World, folder: Path) -> None:
    """Write what there are samples for."""
    folder.mkdir(parents=True, exist_ok=True)
    if world.latencies:
        _latency(world, folder / "journal-latency.png")
    if world.rates:
        _throughput(world, folder / "journal-throughput.png")


def _latency(world: World, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, took in world.latencies.items():
        who, _, callers = name.partition(", ")
        if callers not in {"1", "256"}:
            continue
        ordered = sorted(seconds * 1000 for seconds in took)
        step = max(1, len(ordered) // 2000)
        shares = [index / len(ordered) for index in range(0, len(ordered), step)]
        style = "-" if callers == "1" else "--"
        label = f"{_NAMES[who]}, {callers} caller{'s' * (callers != '1')}"
        axes.plot(ordered[::step], shares, style, color=_COLOURS[who], label=label)
    axes.set(xscale="log", xlabel="commit of a 200-byte edit, ms", ylabel="share of commits")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    _save(figure, path)


def _throughput(world: World, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    for who, points in world.rates.items():
        callers, rates = zip(*sorted(points), strict=True)
        axes.plot(callers, rates, "o-", color=_COLOURS[who], label=_NAMES[who])
    axes.set(xscale="log", yscale="log", xlabel="callers", ylabel="committed edits per second")
    axes.set_xticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    _save(figure, path)


def _save(figure: "plt.Figure", path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
