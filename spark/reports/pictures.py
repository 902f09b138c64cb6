"""A report's bars as PNG files, drawn by matplotlib, which is loaded only for them."""

import importlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ha.console.output import plain
from spark.reports.figures import Bars, Sheet, format_cell
from spark.reports.units import shorten

COLOURS: Final = ("#2f6fb0", "#d9822b")
_INK: Final = "#222222"
_LABEL_WIDTH: Final = 48
_WIDTH_INCHES: Final = 9.0
_DOTS_PER_INCH: Final = 110
_ROOM_FOR_NUMBERS: Final = 0.16
"""Share of all bars' reach that is left free at an end for the number."""


class NoMatplotlib(Exception):
    """Pictures were asked for, and what draws them is not installed."""


def ensure_drawable() -> None:
    """Raise NoMatplotlib now rather than after all the work."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise NoMatplotlib(
            "pictures need matplotlib, which is not installed: pip install 'nnha[reports]', "
            "or ask for --html, which needs nothing"
        ) from error


def draw(sheets: Sequence[Sheet], folder: Path) -> list[Path]:
    """Write a PNG for every figure of bars that has any, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for sheet in sheets:
        for figure in sheet.figures:
            if isinstance(figure, Bars) and any(any(values) for _, values in figure.rows):
                path = folder / f"{figure.name}.png"
                _draw(figure, path)
                drawn.append(path)
    return drawn


def _draw(bars: Bars, path: Path) -> None:
    module: Any = importlib.import_module("matplotlib.figure")
    lines = len(bars.rows) * (1 if bars.both_ways else len(bars.series))
    height = 0.8 + 0.25 * lines + 0.07 * len(bars.rows)
    figure = module.Figure(
        figsize=(_WIDTH_INCHES, height), dpi=_DOTS_PER_INCH, layout="constrained"
    )
    axes = figure.add_subplot()
    _bars(axes, bars)
    heading = figure.suptitle(bars.title, x=0.01, ha="left", fontsize=12, color=_INK)
    heading.set_parse_math(False)
    if bars.note:
        figure.supxlabel(bars.note, x=0.01, ha="left", fontsize=9, color=_INK)
    if any(bars.series):
        figure.legend(loc="outside lower center", ncols=len(bars.series), frameon=False, fontsize=9)
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the page shows it as it is.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure.savefig(path, format="png", metadata={"Software": None})


def _bars(axes: Any, bars: Bars) -> None:  # noqa: ANN401 - matplotlib has no types
    labels = [shorten(plain(label), _LABEL_WIDTH) for label, _ in bars.rows]
    slots = 1 if bars.both_ways else len(bars.series)
    thickness = 0.8 / slots
    values = [value for _, row in bars.rows for value in row]
    for number, name in enumerate(bars.series):
        offset = 0.0 if bars.both_ways else (number - (slots - 1) / 2) * thickness
        places = [row + offset for row in range(len(labels))]
        amounts = [row[number] for _, row in bars.rows]
        colours: Any = COLOURS[number]
        if bars.both_ways and len(bars.series) == 1:
            colours = [COLOURS[amount < 0] for amount in amounts]
        axes.barh(places, amounts, height=thickness * 0.92, color=colours, label=name or None)
        for place, amount in zip(places, amounts, strict=True):
            if amount or not bars.both_ways:
                _number(axes, bars, place, amount)
    axes.set_yticks(range(len(labels)), labels=labels, fontsize=9, color=_INK, parse_math=False)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    least, most = min(0.0, *values), max(bars.scale, *values, 0.0)
    room = (most - least) * _ROOM_FOR_NUMBERS
    axes.set_xlim(least - room if least < 0 else 0, most + room)
    axes.xaxis.set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.axvline(0, color="#888888", linewidth=0.8)


def _number(axes: Any, bars: Bars, place: float, amount: float) -> None:  # noqa: ANN401
    axes.annotate(
        format_cell(bars.kind, amount, brief=True),
        (amount, place),
        xytext=(-4 if amount < 0 else 4, 0),
        textcoords="offset points",
        ha="right" if amount < 0 else "left",
        va="center",
        fontsize=9,
        color=_INK,
    )
