"""Pages for balancers and supervisors: /livez, /readyz, /active, /standby and Hadoop's /isActive.

They show what the daemon knows already and wait neither for ZooKeeper nor for a peer. See
docs/reference/operations.md#probes.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from ha.conf.errors import BadValue
from ha.conf.keys.units import duration
from ha.daemon.http.pages import Page, PageAnswer, json_answer, text_answer
from ha.record import dataclass

ACTIVE: Final = "active"
STANDBY: Final = "standby"
_seconds = duration("s")


@dataclass(frozen=True, slots=True)
class RoleSeen:
    """What a NameNode is at this moment, as its daemon or its controller knows it."""

    state: str
    """``active``, ``standby``, or a word for what it is while it is neither."""
    lag_seconds: float | None = None
    """Of a standby: for how long it has not been level with the journal; None if unknown."""


def probe_pages(
    ready: Callable[[], str | None], role: Callable[[], RoleSeen] | None
) -> Mapping[str, Page]:
    """Return the pages by path.  ``ready`` gives the reason while the daemon should get no work."""
    pages: dict[str, Page] = {
        "/livez": lambda _: json_answer({"alive": True}),
        "/readyz": lambda _: _ready(ready()),
    }
    if role is not None:
        pages["/active"] = lambda _: _is(role(), ACTIVE)
        pages["/standby"] = lambda query: _standby(role(), query)
        pages["/isActive"] = lambda _: _is_active(role())
    return pages


def _ready(reason: str | None) -> PageAnswer:
    return json_answer({"ready": reason is None, "reason": reason}, _status(well=reason is None))


def _is(seen: RoleSeen, wanted: str) -> PageAnswer:
    return json_answer(
        {"state": seen.state, "lag_seconds": seen.lag_seconds}, _status(well=seen.state == wanted)
    )


def _standby(seen: RoleSeen, query: str) -> PageAnswer:
    asked = parse_qs(query).get("max_lag")
    if asked is None or seen.state != STANDBY:
        return _is(seen, STANDBY)
    try:
        most = _seconds(asked[-1])
    except BadValue as error:
        return json_answer({"error": f"max_lag {error}"}, HTTPStatus.BAD_REQUEST)
    lag = seen.lag_seconds
    near = lag is not None and lag <= most
    return json_answer(
        {"state": seen.state, "lag_seconds": lag, "max_lag_seconds": most}, _status(well=near)
    )


def _is_active(seen: RoleSeen) -> PageAnswer:
    """Answer as Hadoop's IsActiveServlet: its two texts, and 405 where it is not active."""
    if seen.state == ACTIVE:
        return text_answer("I am Active!")
    return text_answer("I am not Active!", HTTPStatus.METHOD_NOT_ALLOWED)


def _status(*, well: bool) -> HTTPStatus:
    return HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
