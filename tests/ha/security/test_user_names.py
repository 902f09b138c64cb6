"""The names of local users: looked up once for all that ask, and again when they are old."""

import asyncio
import pwd
import threading
from types import SimpleNamespace

import pytest

from ha.security import user_names
from ha.security.user_names import UserNames

UID = 4711


async def test_a_name_that_is_old_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter(("before", "after"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name=next(found)))
    monkeypatch.setattr(user_names, "KEPT_SECONDS", 0.0)
    names = UserNames()
    assert names.known(UID) == ""
    assert await names.find(UID) == "before"
    assert await names.find(UID) == "after"


async def test_a_lookup_that_failed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter((RuntimeError("a broken directory"), SimpleNamespace(pw_name="alice")))

    def look_up(_: int) -> SimpleNamespace:
        answer = next(found)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    names = UserNames()
    with pytest.raises(RuntimeError, match="a broken directory"):
        await names.find(UID)
    assert await names.find(UID) == "alice"
    assert names.known(UID) == "alice"


async def test_all_that_ask_at_once_wait_for_one_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    going, calls = threading.Event(), 0

    def look_up(_: int) -> SimpleNamespace:
        nonlocal calls
        calls += 1
        assert going.wait(60)
        return SimpleNamespace(pw_name="alice")

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    names = UserNames()
    asking = [asyncio.create_task(names.find(UID)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()  # the others still get their answer
    going.set()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError)
    assert ended[1:] == ["alice", "alice"]
    assert calls == 1
