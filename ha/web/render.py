"""Makes HTML of one look, section by section; the only place that escapes.

Every text that comes from outside may say anything: what is not printable (directions, control
characters) is replaced, long texts are cut, and jinja2 escapes the rest.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ha.cli.explain.explanation import explain
from ha.cluster import marks, row_notes
from ha.cluster.agreement import configuration_drift
from ha.cluster.files_view import size_text
from ha.cluster.problems import problems
from ha.cluster.verdict import taking_over, verdict
from ha.cluster.view import ClusterView
from ha.console.durations import span
from ha.notices.model import time_text
from ha.web import charts, drawing, pictures
from ha.web.answers import answers

OVERVIEW: Final = (
    "verdict", "answers", "since", "takeover", "notices", "map", "hour", "nodes", "outlook",
    "zookeeper", "journal", "datanodes", "files", "facts", "history",
)  # fmt: skip
"""The sections of the first page, in their order."""
NODE: Final = ("verdict", "since", "node")
DATANODES: Final = ("verdict", "all_datanodes")
HOUR: Final = "hour"
MOST_WORST: Final = 20
"""DataNodes on the first page; /datanodes has all that the active lists."""
MOST_CHARACTERS: Final = 2000
"""Of one text from outside."""
NOTHING: Final = "\u2013"
"""A dash where there is no number."""
ASSETS: Final = {"web.css": "text/css", "web.js": "text/javascript"}


def printable(value: object) -> object:
    """Return a text, cut, without what browsers take for a direction or control; else as is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    text = value if len(value) <= MOST_CHARACTERS else f"{value[:MOST_CHARACTERS]}…"
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text)


class Renderer:
    """The templates, loaded once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("ha.web"),
            auto_reload=False,
            autoescape=True,
            undefined=StrictUndefined,
            finalize=printable,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "number": _number,
            "span": span,
            "size": size_text,
            "text": time_text,
            "urlencode": _urlencode,
            "contact": _contact,
        }
        self._environment.globals |= {
            "marks": marks, "pictures": pictures, "drawing": drawing, "charts": charts,
        }  # fmt: skip
        self.assets = {name: _asset(name) for name in ASSETS}
        stamp = sha256(b"".join(self.assets.values())).hexdigest()[:12]
        self._environment.globals |= {"stamp": stamp}
        self._hour: tuple[object, str] = (None, "")

    def sections(
        self, view: ClusterView, names: Sequence[str], node: str | None = None
    ) -> Mapping[str, str]:
        """Return the HTML of these sections; the section ``node`` shows the NameNode ``node``."""
        context, found = _context(view, node), dict[str, str]()
        for name in names:
            if name != HOUR or self._hour[0] is not view.hours:
                # CSS shows no card for a section that is empty.
                template = self._environment.get_template(f"sections/{name}.html")
                found[name] = template.render(context).strip()
            if name == HOUR:  # costs the most, and is new each half minute only
                self._hour = (view.hours, found.setdefault(name, self._hour[1]))
        return found

    def page(self, title: str, view: ClusterView, sections: Mapping[str, str]) -> str:
        """Return a whole page of sections that follow the cluster."""
        shown = {name: (digest(html), Markup(html)) for name, html in sections.items()}
        return self._environment.get_template("live.html").render(
            _context(view, None), title=title, sections=shown
        )

    def still(self, template: str, nameservice: str, now: datetime, **shown: object) -> str:
        """Return a page of what is past or was asked for once; ``shown`` has its ``title``."""
        ago = partial(_ago, now)
        return self._environment.get_template(f"{template}.html").render(
            nameservice=nameservice, now=now, ago=ago, **shown
        )


def _context(view: ClusterView, node: str | None) -> Mapping[str, object]:
    found, noted = verdict(view), (*row_notes.in_force(view), *row_notes.warnings(view))
    said = (found.text.lower(), *found.reasons)
    return {
        "view": view,
        "node": node,
        "nameservice": view.nameservice,
        "now": view.moment,
        "ago": partial(_ago, view.moment),
        "verdict": found,
        "answers": answers(view),
        "drift": configuration_drift(view),
        "most": MOST_WORST,
        "reasons": [one for one in found.reasons if not _is_noted(one, noted)],
        "taking_over": taking_over(view),
        "problems": [one for one in problems(view) if not _is_said(one, said)],
        "notices": noted,
        "explanation": explain(view),
        "remarks": {
            "namenode": row_notes.namenode_remarks,
            "zkfc": row_notes.zkfc_remarks,
            "journalnode": partial(row_notes.journalnode_remarks, view),
        },
    }


def _is_said(problem: str, said: Sequence[str]) -> bool:
    """Return whether the first lines of the page say it already, in the same words."""
    what = problem.partition(":")[0].lower()
    return any(what in line.lower() for line in said)


def _is_noted(reason: str, noted: Sequence[str]) -> bool:
    """Return whether a notice says it, which also says what to do."""
    what = reason.partition(": ")[2] if ": drained " in reason else reason
    return any(what in line for line in noted)


def _ago(now: datetime, then: datetime | str) -> str:
    """Return how long ago, roughly: what changes each second would be read out each second."""
    if isinstance(then, str):
        try:
            then = datetime.fromisoformat(then)
        except ValueError:
            return "an unknown time"
    if then.tzinfo is None:
        return "an unknown time"
    seconds = max(0.0, (now - then).total_seconds())
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return span(seconds)


def _contact(seconds: float) -> str:
    """Say how long ago, so that a heartbeat changes no section: it would be sent each second."""
    if seconds < 10:
        return "under 10 s ago"
    return f"{seconds:.0f} s ago" if seconds < 60 else f"{span(seconds)} ago"


def _urlencode(path: str) -> Markup:
    """Return a path as it stands in a link, which is not cut."""
    return Markup(quote(path))


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def digest(html: str) -> str:
    """Return what distinguishes a section from the same one of another look."""
    return sha256(html.encode()).hexdigest()[:12]


def _asset(name: str) -> bytes:
    return (files("ha.web") / "templates" / name).read_bytes()
