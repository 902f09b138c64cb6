"""Requests of WebHDFS by delegation tokens, from callers of whom nothing else is known."""

from pathlib import Path

import pytest

from tests.ha.daemon.kerberized_pages import conf_of, pages
from tests.ha.security.kdc import Kdc


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 401),
        ("?op=OPEN", 401),
        ("?op=OPEN&user.name=delegation=x", 401),
        ("?delegation=x", 200),
        ("?op=OPEN&DELEGATION=x", 200),
        ("?op=OPEN&d%65legation=x", 200),
    ],
)
async def test_who_shows_a_token_is_asked_for_no_ticket(
    realm: Kdc, tmp_path: Path, method: str, query: str, status: int
) -> None:
    """Bad schedule: a job on another machine has no ticket, and no uid that the kernel knows."""
    async with pages(conf_of(realm, tmp_path)) as there:
        assert (await there.ask(f"/webhdfs/v1/a{query}", method=method))[0] == status
        refused, _, answered = await there.ask(f"/getJournal{query}")
        assert (refused, answered.get("WWW-Authenticate")) == (401, "Negotiate")
