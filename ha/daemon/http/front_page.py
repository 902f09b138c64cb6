"""Pages of a daemon for people: which one it is, where to look, and why somebody sees nothing."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from http import HTTPStatus
from typing import Final

from ha.daemon.facts import DaemonFacts
from ha.daemon.http.pages import PageAnswer

_NAMES: Final = {
    "namenode": "NameNode",
    "zkfc": "failover controller (ZKFC)",
    "journalnode": "JournalNode",
    "datanode": "DataNode",
    "checkpoint": "checkpoint service",
}
_MEANINGS: Final = {
    "/status": "all that it says about itself, as JSON",
    "/metrics": "for Prometheus",
    "/health": "whether it is well",
    "/livez": "for supervisors: it answers",
    "/readyz": "for balancers: it may get work",
    "/active": "200 only while it is active",
    "/standby": "200 only while it is standby",
    "/stacks": "what its threads are doing",
    "/jmx": "beans, as Hadoop shows them",
}
_SHOWN_FACTS: Final = ("version", "pid", "started_at")
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;"
    "margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}dt{font-weight:600}"
)
_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_WITH_CERTIFICATES: Final = (
    "Ask whoever keeps the cluster's authority for a certificate of the role operator: "
    "<code>nnha security issue operator YOU --days 90 --dir authority --out YOU</code>, then "
    "<code>nnha security pkcs12 YOU --out YOU.p12</code>.",
    "Import YOU.p12 into this browser, as a certificate of your own; it asks for the password that "
    "the second command was given. ca.pem, among the authorities, ends the browser's warning.",
    "Open this page again, with https:// at the front, and choose that certificate.",
)
_WITHOUT_CERTIFICATES: Final = (
    "On the machine of this daemon, look as root or as the user that the daemon runs as.",
    "From elsewhere: <code>ssh -L PORT:127.0.0.1:PORT USER@HOST</code> as that user, then "
    "http://localhost:PORT/.",
)


def front_page(
    status: Mapping[str, object], facts: DaemonFacts | None, paths: Sequence[str]
) -> PageAnswer:
    """Return the page of the daemon with this status and these plain pages; its role is first."""
    return _page(HTTPStatus.OK, escape(_title(status, facts)), "".join(_body(status, facts, paths)))


def refused_page(status: HTTPStatus, reason: str, *, certificates: bool) -> PageAnswer:
    """Return the page for a browser that may see nothing: why, and what its person does next.

    ``certificates``: the daemon has some, so a certificate opens its pages.
    """
    steps = _WITH_CERTIFICATES if certificates else _WITHOUT_CERTIFICATES
    lines = "".join(f"<li>{step}</li>\n" for step in steps)
    body = f"<p>{escape(_printable(reason))}</p>\n<h2>What to do</h2>\n<ol>\n{lines}</ol>\n"
    return _page(status, "nnha shows you nothing here", body)


def _page(status: int, title: str, body: str) -> PageAnswer:
    text = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><main><h1>{title}</h1>\n{body}</main></body></html>\n"
    )
    return PageAnswer(status, "text/html; charset=utf-8", text.encode(), HEADERS)


def _title(status: Mapping[str, object], facts: DaemonFacts | None) -> str:
    kind = str(status.get("role") or (facts.process if facts is not None else "daemon"))
    name = f"nnha {_NAMES.get(kind) or _printable(kind)}"
    own = _printable(status.get("namenode") or status.get("address") or "")
    if kind == "zkfc" and own:
        return f"{name} of {own}"
    return f"{name} {own}".strip()


def _body(
    status: Mapping[str, object], facts: DaemonFacts | None, paths: Sequence[str]
) -> Iterator[str]:
    state = status.get("activity") or status.get("state") or status.get("elector")
    if state:
        yield f"<p>It is <strong>{escape(_printable(state))}</strong> at this moment.</p>\n"
    yield f"<p>This page is about one process. {_elsewhere(facts)}</p>\n<dl>\n"
    nameservice = status.get("nameservice")
    if nameservice:
        yield f"<dt>nameservice</dt><dd>{escape(_printable(nameservice))}</dd>\n"
    told = {} if facts is None else facts.as_json()
    for key in _SHOWN_FACTS:
        if key in told:
            yield f"<dt>{key.replace('_at', '')}</dt><dd>{escape(_printable(told[key]))}</dd>\n"
    yield "</dl>\n<ul>\n"
    for path in paths:
        if path in _MEANINGS:
            yield f'<li><a href="{path}">{path}</a>: {_MEANINGS[path]}</li>\n'
    yield "</ul>\n"


def _elsewhere(facts: DaemonFacts | None) -> str:
    page = None if facts is None else facts.page
    if page is None or not page.startswith(("http://", "https://")):
        return "The whole cluster is shown by <code>nnha status</code>, or <code>nnha web</code>."
    shown = escape(_printable(page))
    return f'The whole cluster is shown at <a href="{shown}">{shown}</a>.'


def _printable(value: object) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in str(value))
