"""A short session for a question from outside the election: how it ends, and what answers mean."""

from typing import Any

import pytest

from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.outcome import Done, SessionState
from ha.elector.zookeeper.znodes import clear_parent, connected, content_of, read_active
from tests.ha.elector.test_keeper import (
    DENIED,
    GONE,
    LATE,
    NEVER,
    SETTINGS,
    THEIRS,
    Server,
)
from tests.namenode_sim.term.test_tailer import on_virtual_time

UP, AWAY = SessionState.CONNECTED, SessionState.SUSPENDED
NN1 = ActiveNodeInfo("ns1", "nn1", "host", 8020, 8019)
LOCK = Done((encode(NN1), THEIRS.value))

#   what the session reports, whether an attempt to connect failed; the error of it
SESSIONS = {
    "connected": ((UP,), "", None),
    "late": ((AWAY, UP, SessionState.EXPIRED), "", None),
    "refused": (
        (SessionState.REFUSED,), "",
        (ZooKeeperRefused, r"zk:1 refused the session \(a reason\); .*ha\.zookeeper\.auth"),
    ),
    "expired": ((SessionState.EXPIRED,), "", (ZooKeeperRefused, "refused the session")),
    "silent": ((AWAY,), "", (ZooKeeperUnavailable, "answered within 5 s; check ha.zookeeper.quo")),
    "unreachable": (
        (), "zk:1: no route", (ZooKeeperUnavailable, r"within 5 s \(zk:1: no route\); check")
    ),
}  # fmt: skip


@pytest.mark.parametrize(("states", "trouble", "error"), SESSIONS.values(), ids=list(SESSIONS))
def test_a_session_of_its_own_is_closed_however_it_began(
    states: tuple[SessionState, ...], trouble: str, error: tuple[type[Exception], str] | None
) -> None:
    server = Server(states=states)

    def open_session(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the server's
        session = server.open_session(*given, **named)
        server.lines[-1].trouble = trouble
        return session

    async def play() -> None:
        opened = connected(SETTINGS, deadline_seconds=5.0, open_session=open_session)
        if error is None:
            async with opened:
                server.asked.append("body")
            return
        with pytest.raises(error[0], match=error[1]):
            await opened.__aenter__()

    on_virtual_time(play())
    assert server.asked == [*["body"] * (error is None), "close"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (LOCK, NN1),
        (GONE, None),
        (DENIED, ZooKeeperRefused),
        (LATE, ZooKeeperUnavailable),
        (NEVER, ZooKeeperUnavailable),
        (Done((b"\xff", THEIRS.value)), BadBreadcrumb),
    ],
)
def test_what_the_lock_says_of_the_active(answer: Any, found: Any) -> None:  # noqa: ANN401
    server = Server([answer])

    async def play() -> None:
        asked = read_active(SETTINGS, deadline_seconds=5.0, open_session=server.open_session)
        if not isinstance(found, type):
            assert await asked == found
            return
        with pytest.raises(found, match="zk:1 took longer than 5 s" if answer is NEVER else "."):
            await asked

    on_virtual_time(play())
    assert server.asked == ["read", "close"]


@pytest.mark.parametrize("answer", [DENIED, LATE])
async def test_what_may_not_be_read_is_not_taken_for_absent(answer: Any) -> None:  # noqa: ANN401
    session = Server([answer]).open_session(SETTINGS, lambda _state, _why: None)
    with pytest.raises((ZooKeeperRefused, ZooKeeperUnavailable), match="read /a"):
        await content_of(session, "/a")


SCOPE = f"list {SETTINGS.scope}"
TREES: dict[str, tuple[list[Any], list[str], bool]] = {
    "two in it": (
        [Done(("b", "a")), Done(()), Done(None), Done(()), Done(None), Done(None)],
        [SCOPE, f"{SCOPE}/a", "delete -1", f"{SCOPE}/b", "delete -1", "delete -1"],
        True,
    ),
    "one that goes as it is listed": (
        [Done(("a",)), GONE, Done(None)], [SCOPE, f"{SCOPE}/a", "delete -1"], True
    ),
    "one that goes as it is deleted": (
        [Done(("a",)), Done(()), GONE, Done(None)],
        [SCOPE, f"{SCOPE}/a", "delete -1", "delete -1"],
        True,
    ),
    "no right to list": ([DENIED], [SCOPE], False),
    "no right to delete": ([Done(()), DENIED], [SCOPE, "delete -1"], False),
    "no answer": ([Done(()), LATE], [SCOPE, "delete -1"], False),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "asked", "cleared"), TREES.values(), ids=list(TREES))
async def test_a_scope_goes_from_below_and_what_is_gone_already_is_no_failure(
    answers: list[Any], asked: list[str], cleared: bool
) -> None:
    server = Server([*answers])
    clearing = clear_parent(server.open_session(SETTINGS, lambda _state, _why: None), SETTINGS)
    if cleared:
        await clearing
    else:
        with pytest.raises((ZooKeeperRefused, ZooKeeperUnavailable)):
            await clearing
    assert server.asked == asked
    assert not server.answers
