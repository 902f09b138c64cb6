"""``nnha namespace report``: its forms, its page, and what it says to bad input."""

import json
import random
import re
import sys
from base64 import b64encode
from collections.abc import Callable
from dataclasses import fields
from hashlib import sha256
from html import parser, unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import spark.reports
from ha.cli.main import main
from spark.reports.command import document_of
from spark.reports.export import open_export
from spark.reports.model import NamespaceReport, Section, Settings
from spark.reports.page import page_of
from spark.reports.report import make_report
from spark.reports.sheets.sheets import sheets_of
from tests.ha.cli.schema import faults
from tests.spark.reports.exports import AT_MS, DAY, later, random_rows, write_export

SCHEMA = Path(spark.reports.__file__).parent / "schemas" / "report.json"


@pytest.fixture
def exports(tmp_path: Path) -> tuple[Path, Path]:
    dice = random.Random(5)
    older = random_rows(dice, 200)
    newer = later(dice, older)
    return (
        write_export(tmp_path / "older", older, txid=50, at_ms=AT_MS - 7 * DAY),
        write_export(tmp_path / "newer", newer),
    )


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["namespace", "report", *map(str, words)])


def test_the_json_keeps_its_schema(exports: tuple[Path, Path]) -> None:
    older, newer = exports
    done = run(newer, "--since", older, "-o", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert faults(SCHEMA, document) == []
    assert None not in document["sections"].values()
    assert document["sections"]["usage"]["users"][0]["bytes"] > 1 << 40


def test_a_section_that_was_not_asked_for_is_null(exports: tuple[Path, Path]) -> None:
    done = run(exports[1], "--section", "usage", "--section", "small-files", "-o", "json")
    document = json.loads(done.stdout)
    assert faults(SCHEMA, document) == []
    sections = document["sections"]
    assert {name for name in sections if sections[name]} == {"usage", "small-files"}


def test_every_section_has_its_field() -> None:
    found = [field.name for field in fields(NamespaceReport)]
    assert found[2:] == [section.value.replace("-", "_") for section in Section]


def test_the_text_has_every_section(exports: tuple[Path, Path]) -> None:
    older, newer = exports
    done = run(newer, "--since", older, "--top", "3", "--small-below", "64m")
    assert done.exit_code == 0, done.output
    for words in (
        "Usage by user and group",
        "smaller than 64 MiB",
        "Growth",
        "Largest directories",
    ):
        assert words in done.stdout
    document = json.loads(run(newer, "-o", "json").stdout)
    assert f"{document['sections']['usage']['total']['files']:,} files hold" in done.stdout


class Page(parser.HTMLParser):
    """What a page links to, and whether its elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "action"}]
        if tag not in {"meta", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_beside_it(exports: tuple[Path, Path], tmp_path: Path) -> None:
    older, newer = exports
    target = tmp_path / "report.html"
    assert run(newer, "--since", older, "--html", target).exit_code == 0
    text = target.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert {link[:1] for link in page.links} == {"#"}
    assert not re.search(r"https?:|@import|url\(|//\w+\.", text)
    assert [path.name for path in tmp_path.glob(".report*")] == []
    for link in page.links:
        assert f'id="{link[1:]}"' in text


def test_a_browser_runs_no_script_but_the_page_s_own(
    exports: tuple[Path, Path], tmp_path: Path
) -> None:
    """Compare hashes: what a file's name could ever bring into the page is not among them."""
    target = tmp_path / "report.html"
    assert run(exports[1], "--html", target).exit_code == 0
    text = target.read_text(encoding="utf-8")
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    policy = unescape(found[1])
    for element, directive in (("script", "script-src"), ("style", "style-src")):
        body = text.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
        digest = b64encode(sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_the_page_holds_the_figures_and_escapes_names(exports: tuple[Path, Path]) -> None:
    older, newer = exports
    export = open_export(newer)
    report = make_report(export, Settings(as_of_ms=AT_MS), set(Section), open_export(older))
    text = page_of(report, sheets_of(report)).replace("<wbr>", "")
    assert report.usage is not None
    for user in report.usage.users:
        assert f' data-v="{user.bytes}" title="{user.bytes:,} bytes">' in text
    assert "x&lt;&amp;&gt;&#34;&#39;$\\frac$" in text
    assert "x<&>" not in text
    assert report.directories is not None
    assert all(one.path in text for one in report.directories.by_bytes)


def test_pictures_are_drawn_even_of_names_that_look_like_formulas(
    exports: tuple[Path, Path], tmp_path: Path
) -> None:
    older, newer = exports
    folder = tmp_path / "png"
    assert run(newer, "--since", older, "--png", folder).exit_code == 0
    drawn = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {"usage-bytes-by-user.png", "age-bytes.png", "growth-by-user.png"} <= set(drawn)
    assert all(data.startswith(b"\x89PNG") for data in drawn.values())


def _facts(export: Path, text: str) -> None:
    (export / "export.json").write_text(text)


def _said(export: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((export / "export.json").read_text())
    return found


def _part(export: Path) -> Path:
    return export / "inodes" / "part-1.parquet"


def _flip(export: Path) -> None:
    data = bytearray(_part(export).read_bytes())
    data[200:260] = bytes(60)
    _part(export).write_bytes(data)


def _no_directories(export: Path) -> None:
    for path in (export / "directories").iterdir():
        path.unlink()


def _mix_up(export: Path) -> None:
    (export / "directories" / "part-0.parquet").write_bytes(_part(export).read_bytes())


def _no_utf8(export: Path) -> None:
    table = pq.read_table(_part(export))
    place = table.schema.get_field_index("user")
    users = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary()).view(pa.string())
    pq.write_table(table.set_column(place, table.schema.field(place), users), _part(export))


DAMAGES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "no facts": (lambda e: (e / "export.json").unlink(), 2, "nnha namespace export"),
    "another format": (
        lambda e: _facts(e, json.dumps(_said(e) | {"format": 2})),
        2,
        "format 2, and we read 1",
    ),
    "another program's": (_mix_up, 2, "has no column"),
    "facts cut": (lambda e: _facts(e, '{"image": '), 4, "export.json is no JSON"),
    "a fact is missing": (lambda e: _facts(e, '{"format": 1}'), 4, "lacks a fact"),
    "torn": (
        lambda e: _part(e).write_bytes(_part(e).read_bytes()[:-30]),
        4,
        "part-1.parquet cannot be read",
    ),
    "a part is missing": (lambda e: _part(e).unlink(), 4, "export.json says"),
    "no directories": (_no_directories, 4, "has no Parquet file"),
    "a name is no UTF-8": (_no_utf8, 4, "part-1.parquet cannot be read"),
    "bytes overwritten": (_flip, 4, "part-1.parquet"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_bad_input_is_named_and_nothing_is_written(
    exports: tuple[Path, Path], tmp_path: Path, what: str
) -> None:
    damage, code, words = DAMAGES[what]
    damage(exports[1])
    page, folder = tmp_path / "report.html", tmp_path / "png"
    done = run(exports[1], "--html", page, "--png", folder)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert words in done.stderr
    assert not page.exists()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--section", "growth"), "--since"),
        (("--small-below", "many"), "--small-below"),
        (("--small-below", "0"), "more than 0"),
        (("--section", "everything"), "everything"),
    ],
)
def test_wrong_usage(exports: tuple[Path, Path], words: tuple[str, ...], said: str) -> None:
    done = run(exports[1], *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_page_that_cannot_be_written_is_told(exports: tuple[Path, Path], tmp_path: Path) -> None:
    done = run(exports[1], "--html", tmp_path / "nowhere" / "report.html")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "nowhere" in done.stderr


def test_growth_is_from_the_older_to_the_newer(exports: tuple[Path, Path]) -> None:
    done = run(exports[0], "--since", exports[1])
    assert done.exit_code == 2
    assert "is newer than" in done.stderr


def test_without_matplotlib_pictures_are_refused_before_the_work(
    exports: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run(exports[1], "--png", tmp_path / "png")
    assert done.exit_code == 2
    assert "nnha[reports]" in done.stderr
    assert run(exports[1], "--html", tmp_path / "page.html").exit_code == 0


def test_the_document_is_made_of_plain_values(exports: tuple[Path, Path]) -> None:
    report = make_report(open_export(exports[1]), Settings(as_of_ms=AT_MS), {Section.QUOTA})
    document = document_of(report)
    assert json.loads(json.dumps(document)) == document
