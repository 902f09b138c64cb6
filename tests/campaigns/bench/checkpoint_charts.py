"""The checkpoint bench as a picture: how long a merge takes and what memory, against the size."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tests.campaigns.bench.checkpoint_run import Run

mpl.use("Agg")
_STYLES: Final = {"one process": ("s--", "tab:orange"), "Spark, local[2]": ("o-", "tab:blue")}

Runs = Mapping[tuple[int, int], Run]


def draw(single: Runs, spark: Runs, ops: int, folder: Path) -> None:
    """Write ``checkpoint-merge.png``: wall time on the left, memory on the right."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, (times, memory) = plt.subplots(1, 2, figsize=(10, 4))
    for label, runs in (("one process", single), ("Spark, local[2]", spark)):
        style, colour = _STYLES[label]
        found = sorted((inodes, each) for (inodes, count), each in runs.items() if count == ops)
        for axes, of in ((times, _seconds), (memory, _gigabytes)):
            sizes = [inodes / 1e6 for inodes, _ in found]
            axes.plot(sizes, [of(each) for _, each in found], style, color=colour, label=label)
    titles = {
        times: ("seconds", f"Merge of an image and {ops:,} edits"),
        memory: ("GB resident at most", "Memory of the (driver's) Python process"),
    }
    for axes, (unit, title) in titles.items():
        axes.set(xlabel="million inodes in the image", ylabel=unit, title=title)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,g}"))
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(folder / "checkpoint-merge.png", dpi=110)
    plt.close(figure)


def _seconds(found: Run) -> float:
    return found.seconds


def _gigabytes(found: Run) -> float:
    return found.driver_bytes / 1e9
