"""What the sections of a page say, and what they leave to others."""

import re
from dataclasses import asdict, replace

import pytest
from markupsafe import Markup

from ha.cluster.daemon_fields import CheckpointView
from ha.cluster.files_view import files_view
from ha.cluster.view import ClusterView
from ha.web.render import (
    ASSETS,
    MOST_CHARACTERS,
    MOST_WORST,
    NOTHING,
    OVERVIEW,
    Renderer,
    digest,
    printable,
)
from tests.ha.web.recorded import FILES, NODES, hour, many
from tests.ha.web.situations import HEALTHY, HISTORY, NOW, SITUATIONS, daemon, with_files


def section(view: ClusterView, name: str, node: str | None = None) -> str:
    (html,) = Renderer().sections(view, (name,), node).values()
    return html


def lines(html: str) -> list[str]:
    return [re.sub("<[^>]*>", "", one).strip() for one in re.findall(r"<li[^>]*>(.*?)</li>", html)]


PRINTED: dict[str, tuple[object, object]] = {
    "a plain text": ("plain, ü, 日", "plain, ü, 日"),
    "lines": ("a\nb", "a\nb"),
    "a direction and a control": ("a\u202eb\x1b\n", "a\ufffdb\ufffd\n"),
    "as long as may be": ("x" * MOST_CHARACTERS, "x" * 2000),
    "longer": ("x" * (MOST_CHARACTERS + 1), "x" * 2000 + "…"),
    "longer, and with a control": ("\r" + "x" * 2000, "\ufffd" + "x" * 1999 + "…"),
    "a number": (7, 7),
    "made here": (Markup("<b>\u202e</b>"), Markup("<b>\u202e</b>")),
}


@pytest.mark.parametrize("name", PRINTED)
def test_texts_from_outside_are_printable_and_not_endless(name: str) -> None:
    given, shown = PRINTED[name]
    assert printable(given) == shown


AGES = {
    "2026-11-21T14:29:00.600Z": "59 s",
    "2026-11-21T14:29:00.000Z": "1 min",
    "2026-11-21T14:27:01.000Z": "2 min",
    "2026-11-21T13:30:01.000Z": "59 min",
    "2026-11-21T13:30:00.000Z": "1h 0m",
    "2026-11-18T10:30:00.000Z": "3d 4h",
    "2026-11-21T15:30:00.000+01:00": "0 s",
    "2026-11-21T14:31:00.000Z": "0 s",
    "2026-11-21T14:29:00.000": "an unknown time",
    "yesterday": "an unknown time",
}


@pytest.mark.parametrize("at", AGES)
def test_an_age_is_told_roughly(at: str) -> None:
    nn1 = replace(HEALTHY.namenodes[0], checkpoint=CheckpointView(7, at, None, None))
    html = section(replace(HEALTHY, namenodes=(nn1, HEALTHY.namenodes[1])), "node", "nn1")
    assert f"transaction 7, {AGES[at]} old<" in html


def test_numbers_have_commas_and_a_dash_where_there_is_none() -> None:
    assert "<dt>Epoch</dt><dd>7<" in section(HEALTHY, "node", "nn1")
    html = section(HEALTHY, "node", "nn2")
    assert "<dt>Epoch</dt><dd>–<" in html  # noqa: RUF001 - a dash
    assert "<dt>Last transaction</dt><dd>31,402,118, 0 behind<" in html


def test_a_text_from_outside_is_no_html() -> None:
    drain = replace(SITUATIONS["drained"].drains["nn2"], reason="<b>more</b> & \u202e")
    notices = replace(HEALTHY.notices, drains={"nn2": drain})
    html = section(replace(HEALTHY, notices=notices), "notices")
    assert "&lt;b&gt;more&lt;/b&gt; &amp; \ufffd" in html
    assert "<b>" not in html


ALONE = replace(SITUATIONS["paused"], namenodes=HEALTHY.namenodes[:1], zkfcs=HEALTHY.zkfcs[:1])
TWO_ACTIVE = replace(
    HEALTHY, namenodes=tuple(replace(one, state="active") for one in HEALTHY.namenodes)
)
REASONS = {
    "two active": ["nn1 and nn2 both say that they are active"],
    "paused alone": ["there is no other NameNode"],
    "loading": ["nn2: NameNode: it is still starting; ZKFC: judges the NameNode initializing"],
    "zookeeper-away": ["ZooKeeper: no ZooKeeper server answers"],
    "paused": [],
    "drained": [],
}


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_not_told_twice_where_a_notice_tells_it(name: str) -> None:
    view = {"two active": TWO_ACTIVE, "paused alone": ALONE, **SITUATIONS}[name]
    assert lines(section(view, "verdict")) == REASONS[name]


NOTICES = {
    "healthy": [],
    "two active": [],
    "failover-under-way": [
        "✖ no NameNode is active",
        "✖ NameNode nn1: not running (connection refused)",
    ],
    "nobody-active": ["✖ NameNode nn1: not running (connection refused)"],
    "two-journalnodes-away": [
        "✖ JournalNode jn2.example:8485: not running (connection refused)",
        "✖ JournalNode jn3.example:8485: not running (connection refused)",
    ],
    "drained": [
        "▲ nn2 is drained by bob@ops1 until it is ended: memory to be added  → "
        "nnha drain nn2 --end",
        "○ the drain of nn2 is obeyed by its ZKFC",
    ],
}


@pytest.mark.parametrize("name", NOTICES)
def test_a_problem_is_not_told_twice_where_the_first_lines_tell_it(name: str) -> None:
    view = {"two active": TWO_ACTIVE, **SITUATIONS}[name]
    assert lines(section(view, "notices")) == NOTICES[name]


def test_what_need_not_be_wrong_is_noticed_too() -> None:
    (told,) = lines(section(replace(HEALTHY, own_delay_seconds=2.0), "notices"))
    assert told.startswith("▲ this command itself stood still for 2.0 s")


def test_each_section_shows_its_part_of_the_look() -> None:
    assert "SERVING, and a failover could follow" in section(HEALTHY, "verdict")
    assert "<strong>prod</strong>" in section(HEALTHY, "since")
    assert "<strong>nn2</strong> takes over" in section(
        SITUATIONS["failover-under-way"], "takeover"
    )
    assert "If nn1 went away now" in section(HEALTHY, "outlook")
    remarked = section(SITUATIONS["nobody-active"], "nodes")
    assert "cannot be promoted: the journal holds edits only up to 31,401,000" in remarked
    assert "its last takeover failed: fencing failed" in remarked
    assert "damaged segments: 1" in section(SITUATIONS["learner"], "journal")
    assert "211T used of 480T, 260T left" in section(HEALTHY, "files")


def test_a_page_has_its_sections_with_what_tells_each_from_the_next_looks() -> None:
    sections = Renderer().sections(HEALTHY, ("verdict", "since"))
    html = Renderer().page("Cluster", HEALTHY, sections)
    for name, part in sections.items():
        start = f'<div id="s-{name}" class="section s-{name}" data-digest="{digest(part)}"'
        assert start in html
        assert part in html
    assert len({digest(part) for part in sections.values()}) == 2
    assert len(digest("")) == 12
    assert "<title>Cluster – prod – nnha</title>" in html  # noqa: RUF001 - a dash
    assert "14:30:00 UTC" in html


def test_the_pages_of_what_is_past_have_their_titles_and_the_time_of_the_request() -> None:
    renderer = Renderer()
    pages = {
        "Failovers": renderer.still("history", "prod", NOW, title="Failovers", entries=HISTORY),
        "Failover 12": renderer.still(
            "failover", "prod", NOW, title="Failover 12", entry=HISTORY[0]
        ),
        "Not found": missing(renderer),
    }
    for title, html in pages.items():
        assert f"<title>{title} – prod – nnha</title>" in html  # noqa: RUF001 - a dash
        assert "as of 14:30:00 UTC" in html
    for title in ("Failovers", "Failover 12"):
        assert "(3d 4h ago)" in pages[title]
        assert "2026-11-18T10:30:00" in pages[title]
    assert "There is no such page." in pages["Not found"]


def missing(renderer: Renderer) -> str:
    return renderer.still("message", "prod", NOW, title="Not found", text="There is no such page.")


def test_the_addresses_of_assets_change_with_what_they_hold() -> None:
    renderer = Renderer()
    assert ASSETS == {"web.css": "text/css", "web.js": "text/javascript"}
    assert renderer.assets.keys() == ASSETS.keys()
    assert all(renderer.assets.values())
    html = missing(renderer)
    (stamp,) = re.findall(r'href="/web\.css\?([0-9a-f]+)"', html)
    assert len(stamp) == 12


def test_datanodes_are_a_table() -> None:
    files = files_view(asdict(FILES) | {"datanodes": NODES})
    assert files is not None
    assert rows_of(section(with_files(files), "datanodes")) == [
        f"d3.example 10.0.0.3:9866 ▲ stale 41 s ago {NOTHING} 4,000 2 ▲ 1 failed 38 % 3T of 8T "
        f"{NOTHING}",
        f"d1.example 10.0.0.1:9866 ● live under 10 s ago {NOTHING} 0 0 {NOTHING} {NOTHING}",
    ]
    first, *_ = rows_of(section(HEALTHY, "datanodes"))
    assert first == (
        "d1.example 10.0.1.1:9866 ● live under 10 s ago /room1/rack2 4,000,001 2 40 % 16T of 40T "
        "0.2.0"
    )
    for name in ("failover-under-way", "nobody-answers"):
        assert section(SITUATIONS[name], "datanodes") == ""
        assert "They are not known" in section(SITUATIONS[name], "all_datanodes")


def rows_of(html: str) -> list[str]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)[1:]
    return [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in rows]


def test_of_many_datanodes_the_first_page_lists_those_that_are_not_well() -> None:
    html = section(SITUATIONS["data-at-risk"], "datanodes")
    assert [row.split()[0] for row in rows_of(html)] == [f"dn000{n}.example" for n in range(5)]
    assert "decommissioning 1,200 blocks left" in rows_of(html)[4]
    assert "all are shown" in html
    whole = section(SITUATIONS["data-at-risk"], "all_datanodes")
    assert len(rows_of(whole)) == 200
    assert 'href="/datanodes"' not in whole
    ill = tuple(replace(one, state="stale") for one in many(60, 3))
    few = with_files(replace(FILES, live_datanodes=700, datanodes=ill))
    html = section(few, "datanodes")
    assert len(rows_of(html)) == MOST_WORST
    assert "The worst 20 of those that are not well are shown" in html
    assert "640 more are not listed" in html


def test_a_heartbeat_changes_no_section() -> None:
    """Sections that changed are sent to all viewers, each second."""
    later = replace(
        FILES,
        datanodes=tuple(replace(one, last_contact_seconds=2.9) for one in FILES.datanodes),
    )
    assert Renderer().sections(with_files(later), OVERVIEW) == Renderer().sections(
        with_files(FILES), OVERVIEW
    )


def test_a_new_hour_is_drawn_and_an_old_one_is_not_drawn_again() -> None:
    renderer, other = Renderer(), {"nn1": hour("standby")}
    first = renderer.sections(HEALTHY, ("hour",))
    assert renderer.sections(HEALTHY, ("verdict",)).keys() == {"verdict"}
    assert renderer.sections(replace(HEALTHY, seconds=0.5), ("hour",)) == first
    assert renderer.sections(replace(HEALTHY, hours=other), ("hour",)) != first
    assert renderer.sections(replace(HEALTHY, hours={}), ("hour",)) == {"hour": ""}
    assert renderer.sections(HEALTHY, ("hour",)) == first


def test_the_configuration_names_the_daemons_and_keys_that_differ() -> None:
    assert "● the same on all 7 daemons" in text_of(section(HEALTHY, "facts"))
    daemons = [replace(daemon(1), config_keys=("a=1", "b=1")) for _ in range(7)]
    daemons[1] = replace(daemons[1], config_hash="other", config_keys=("a=1", "b=2"))
    view = replace(
        HEALTHY,
        namenodes=tuple(
            replace(row, daemon=one) for row, one in zip(HEALTHY.namenodes, daemons, strict=False)
        ),
        zkfcs=tuple(replace(row, daemon=daemons[2]) for row in HEALTHY.zkfcs),
        journalnodes=tuple(replace(row, daemon=daemons[4]) for row in HEALTHY.journalnodes),
    )
    found = text_of(section(view, "facts"))
    assert "▲ not the same configuration files differ (b): NameNode nn2 read others" in found


def text_of(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_drawing_and_charts_have_their_words_and_no_style_of_their_own() -> None:
    for name in ("map", "hour", "datanodes"):
        html = section(SITUATIONS["data-at-risk"], name)
        assert "style=" not in html
        assert "<script" not in html
    drawn = section(HEALTHY, "map")
    assert drawn.count('role="img"') == 2
    assert drawn.count("DataNodes: 12 live, 44% full.") == 2
    hour = section(HEALTHY, "hour")
    assert hour.count('role="img"') == 5
    assert section(replace(HEALTHY, hours={}), "hour") == ""
    assert section(SITUATIONS["nobody-answers"], "map") == ""
