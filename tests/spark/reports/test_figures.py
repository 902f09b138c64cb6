"""A report's figures against slow, plain ones over the same random rows."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from spark.reports.export import open_export
from spark.reports.model import Bucket, Heap, NamespaceReport, Section, Settings, Usage
from spark.reports.report import make_report
from tests.spark.reports import exports
from tests.spark.reports.exports import AT_MS, DAY, ROOT, Row, Rows, children, path_of, write_export

SMALL, COLD_DAYS = 1 << 20, 365


def reported(folder: Path, rows: Rows, top: int = 1000) -> NamespaceReport:
    export = open_export(write_export(folder, rows))
    settings = Settings(as_of_ms=AT_MS, small_below=SMALL, cold_days=COLD_DAYS, top=top)
    return make_report(export, settings, set(Section))


@pytest.fixture(params=range(4), ids="seed {}".format)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Rows, NamespaceReport]:
    rows = exports.random_rows(random.Random(request.param), 400)
    return rows, reported(tmp_path / "export", rows)


def files(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.type == "FILE"]


def used_days(row: Row) -> int:
    return (AT_MS - max(row.mtime_ms, row.atime_ms or 0)) // DAY


def cold(row: Row) -> bool:
    return used_days(row) >= COLD_DAYS


def on_disks(row: Row) -> int:
    data, parity = {0: (1, row.replication - 1), 1: (6, 3), 2: (3, 2)}[row.ec_policy_id]
    return row.length + -(-row.length * parity // data)


def held(rows: Iterable[Row]) -> int:
    return sum(row.length for row in rows)


def usage(name: str, own: list[Row]) -> Usage:
    mine = files(own)
    small, old = [r for r in mine if r.length < SMALL], [r for r in mine if cold(r)]
    return Usage(
        name=name,
        files=len(mine),
        directories=sum(row.type == "DIRECTORY" for row in own),
        symlinks=sum(row.type == "SYMLINK" for row in own),
        bytes=held(mine),
        disk_bytes=sum(map(on_disks, mine)),
        blocks=sum(row.blocks for row in mine),
        small_files=len(small),
        small_bytes=held(small),
        cold_files=len(old),
        cold_bytes=held(old),
    )


def by(rows: Rows, owner: Callable[[Row], str]) -> list[Usage]:
    owners = sorted({owner(row) for row in rows.values()})
    found = [usage(name, [r for r in rows.values() if owner(r) == name]) for name in owners]
    return sorted(found, key=lambda one: (-one.bytes, -one.files, one.name))


def test_usage_by_owner(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.usage is not None
    assert report.usage.total == usage("", list(rows.values()))
    assert list(report.usage.users) == by(rows, lambda row: row.user)
    assert list(report.usage.groups) == by(rows, lambda row: row.group)
    writing = [row for row in files(rows.values()) if row.under_construction]
    assert report.usage.under_construction == len(writing)


def check_buckets(buckets: Iterable[Bucket], found: list[Row], of: Callable[[Row], int]) -> None:
    for bucket in buckets:
        inside = [
            row
            for row in found
            if max(of(row), 0) >= bucket.at_least
            and (bucket.below is None or of(row) < bucket.below)
        ]
        assert (bucket.files, bucket.bytes) == (len(inside), held(inside)), bucket


def test_sizes_and_ages(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.small_files is not None
    assert report.age is not None
    found = files(rows.values())
    check_buckets(report.small_files.sizes, found, lambda row: row.length)
    check_buckets(report.age.used, found, used_days)
    check_buckets(report.age.modified, found, lambda row: (AT_MS - row.mtime_ms) // DAY)
    assert sum(bucket.files for bucket in report.age.used) == len(found)


def directories(rows: Rows) -> list[Row]:
    return [row for row in rows.values() if row.type == "DIRECTORY"]


def tree(rows: Rows, directory: int) -> list[Row]:
    return [rows[inode] for inode in exports.below(rows, directory)]


def test_small_files_by_directory(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.small_files is not None
    heaps = []
    for directory in directories(rows):
        own = files(children(rows, directory.id))
        small = [row for row in own if row.length < SMALL]
        if small:
            others = [row for row in children(rows, directory.id) if row.type != "DIRECTORY"]
            sizes = (len(small), held(small), len(others), held(own), 0)
            heaps.append((directory.id, Heap(path_of(rows, directory.id), *sizes)))
    heaps.sort(key=lambda found: (-found[1].files, found[0]))
    assert list(report.small_files.directories) == [heap for _, heap in heaps]


def worth_coding(row: Row) -> bool:
    return cold(row) and not row.ec_policy_id and row.replication > 1 and row.length >= 64 << 20


@pytest.mark.parametrize("kind", ["cold", "coded"])
def test_trees_of_one_kind_are_the_topmost(case: tuple[Rows, NamespaceReport], kind: str) -> None:
    rows, report = case
    assert report.age is not None
    assert report.redundancy is not None
    is_so, heaps = cold, report.age.trees
    if kind == "coded":
        is_so, heaps = worth_coding, report.redundancy.trees
    mostly = {}
    for directory in directories(rows):
        own = files(tree(rows, directory.id))
        part = [row for row in own if is_so(row)]
        if held(part) and held(part) * 100 >= held(own) * 90:
            saved = sum(r.length * 3 - r.length - -(-r.length // 2) for r in part)
            saved = saved if kind == "coded" else 0
            others = [row for row in tree(rows, directory.id) if row.type != "DIRECTORY"]
            sizes = (len(part), held(part), len(others), held(own), saved)
            mostly[directory.id] = Heap(path_of(rows, directory.id), *sizes)
    for topmost in list(mostly):
        for inode in exports.below(rows, topmost):
            mostly.pop(inode, None)
    wanted = sorted(mostly.items(), key=lambda found: (-found[1].bytes, found[0]))
    assert list(heaps) == [heap for _, heap in wanted]


def test_what_coding_would_save(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.redundancy is not None
    part = [row for row in files(rows.values()) if worth_coding(row)]
    assert report.redundancy.candidate_files == len(part)
    assert report.redundancy.saved_bytes == sum(
        on_disks(row) - row.length - -(-row.length // 2) for row in part
    )
    kinds = report.redundancy.kinds
    assert {(kind.replication, kind.ec_policy_id) for kind in kinds} == {
        (3, 0),
        (1, 0),
        (0, 1),
        (0, 2),
    }
    assert sum(kind.disk_bytes for kind in kinds) == sum(map(on_disks, files(rows.values())))


def test_quotas(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.quota is not None
    limited = [
        row
        for row in directories(rows)
        if row.id != ROOT and (row.ns_quota is not None or row.ds_quota is not None)
    ]
    assert report.quota.count == len(limited) > 0
    fullest = report.quota.fullest
    assert list(fullest) == sorted(fullest, key=lambda quota: (-quota.used_percent, quota.path))
    found = {quota.path: quota for quota in fullest}
    for row in limited:
        quota = found[path_of(rows, row.id)]
        own = tree(rows, row.id)
        assert (quota.names_quota, quota.space_quota) == (row.ns_quota, row.ds_quota)
        assert quota.names_used == 1 + len(own)
        assert quota.space_used == sum(map(on_disks, files(own)))
        shares = [(quota.names_used, row.ns_quota), (quota.space_used, row.ds_quota)]
        most = max(100 * used / of if of else 100.0 for used, of in shares if of is not None)
        assert quota.used_percent == pytest.approx(most, abs=0.01)


def test_the_largest_directories(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.directories is not None
    assert report.largest is not None
    entries = {row.id: len(children(rows, row.id)) for row in directories(rows)}
    order = sorted((inode for inode in entries if entries[inode]), key=lambda i: (-entries[i], i))
    assert [one.id for one in report.largest.directories] == order
    check = {row.id: held(files(children(rows, row.id))) for row in directories(rows)}
    order = sorted((inode for inode in check if check[inode]), key=lambda i: (-check[i], i))
    assert [one.id for one in report.directories.by_bytes] == order
    assert sum(bucket.files for bucket in report.largest.sizes) == len(entries)


def test_trees_leave_out_what_one_child_says(case: tuple[Rows, NamespaceReport]) -> None:
    rows, report = case
    assert report.directories is not None
    sums = {row.id: held(files(tree(rows, row.id))) for row in directories(rows)}
    telling = []
    for inode, amount in sums.items():
        inner = [sums[child.id] for child in children(rows, inode) if child.id in sums]
        if inode != ROOT and amount and max(inner, default=0) * 100 <= amount * 90:
            telling.append(inode)
    telling.sort(key=lambda inode: (-sums[inode], inode))
    found = report.directories.by_subtree_bytes
    assert [(one.id, one.subtree_bytes) for one in found] == [(i, sums[i]) for i in telling]
    assert all(one.path == path_of(rows, one.id) for one in found)


@pytest.mark.parametrize("seed", range(4))
def test_growth_file_by_file(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    older = exports.random_rows(dice, 400)
    newer = exports.later(dice, older)
    since = open_export(write_export(tmp_path / "older", older, txid=50, at_ms=AT_MS - 30 * DAY))
    export = open_export(write_export(tmp_path / "newer", newer))
    settings = Settings(as_of_ms=AT_MS, top=1000)
    growth = make_report(export, settings, {Section.GROWTH}, since).growth
    assert growth is not None
    assert growth.days == 30
    then = {row.id: row for row in files(older.values())}
    now = {row.id: row for row in files(newer.values())}
    stayed = [(then[inode].length, now[inode]) for inode in then.keys() & now.keys()]
    for flow in (growth.total, *growth.users):

        def his(row: Row, name: str = flow.name) -> bool:
            return name in {"", row.user}

        created = [row for inode, row in now.items() if inode not in then and his(row)]
        deleted = [row for inode, row in then.items() if inode not in now and his(row)]
        grown = [row.length - was for was, row in stayed if row.length > was and his(row)]
        shrunk = [was - row.length for was, row in stayed if row.length < was and his(row)]
        assert (flow.created_files, flow.created_bytes) == (len(created), held(created))
        assert (flow.deleted_files, flow.deleted_bytes) == (len(deleted), held(deleted))
        assert (flow.grown_files, flow.grown_bytes) == (len(grown), sum(grown))
        assert (flow.shrunk_files, flow.shrunk_bytes) == (len(shrunk), sum(shrunk))
        assert flow.before_bytes == held(row for row in then.values() if his(row))
        assert flow.after_bytes == held(row for row in now.values() if his(row))
        given = [then[i].length for i in then.keys() & now.keys()
                 if his(then[i]) and not his(now[i])]  # fmt: skip
        taken = [then[i].length for i in then.keys() & now.keys()
                 if his(now[i]) and not his(then[i])]  # fmt: skip
        assert flow.received_bytes == sum(taken) - sum(given)
    assert {flow.name for flow in growth.users} == {
        row.user for row in (*then.values(), *now.values())
    }


@pytest.mark.parametrize("seed", range(3))
def test_growth_of_trees(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    older = exports.random_rows(dice, 400)
    newer = exports.later(dice, older)
    since = open_export(write_export(tmp_path / "older", older, txid=50))
    export = open_export(write_export(tmp_path / "newer", newer))
    growth = make_report(export, Settings(as_of_ms=AT_MS, top=1000), {Section.GROWTH}, since).growth
    assert growth is not None
    then = {row.id: held(files(tree(older, row.id))) for row in directories(older)}
    now = {row.id: held(files(tree(newer, row.id))) for row in directories(newer)}
    parents = {inode: (newer if inode in now else older)[inode] for inode in then | now}
    more = {inode: now.get(inode, 0) - then.get(inode, 0) for inode in parents}
    explained = {
        row.parent_id
        for inode, row in parents.items()
        if row.parent_id and abs(more[inode]) * 100 > abs(more[row.parent_id]) * 90
    }
    whole = then.keys() ^ now.keys()
    assert whole
    wanted = {
        path_of(newer if inode in now else older, inode): amount
        for inode, amount in more.items()
        if amount and inode != ROOT
        if (parents[inode].parent_id not in whole if inode in whole else inode not in explained)
    }
    found = {
        one.path: one.after_bytes - one.before_bytes for one in (*growth.grown, *growth.shrunk)
    }
    assert found == wanted
    assert min(one.after_bytes - one.before_bytes for one in growth.grown) > 0
    fates = {one.path: one.fate for one in (*growth.grown, *growth.shrunk)}
    for inode in (inode for inode in more if inode not in then):
        assert fates.get(path_of(newer, inode), "created") == "created"
    for inode in (inode for inode in more if inode not in now):
        assert fates.get(path_of(older, inode), "deleted") == "deleted"


def test_lists_are_as_long_as_asked(tmp_path: Path) -> None:
    rows = exports.random_rows(random.Random(9), 300)
    short, whole = reported(tmp_path / "a", rows, top=3), reported(tmp_path / "b", rows)
    assert short.directories is not None
    assert whole.directories is not None
    assert short.directories.by_bytes == whole.directories.by_bytes[:3]
    assert short.usage == whole.usage


def test_an_empty_namespace_has_a_report(tmp_path: Path) -> None:
    rows = {ROOT: Row(ROOT, None, "DIRECTORY", "", "hdfs", "supergroup", AT_MS, None)}
    report = reported(tmp_path / "export", rows)
    assert report.usage is not None
    assert report.usage.total.directories == 1
    assert report.quota is not None
    assert report.quota.count == 0


def test_ages_count_from_the_newest_time_in_the_image(tmp_path: Path) -> None:
    """Ignore a wrong clock's future; an image may be exported long after it was saved."""
    root = Row(ROOT, None, "DIRECTORY", "", "hdfs", "supergroup", AT_MS - 90 * DAY, None)
    rows = {ROOT: root}
    export = open_export(write_export(tmp_path / "late", rows))
    assert (export.source.at_ms, export.source.as_of_ms) == (AT_MS, AT_MS - 90 * DAY)
    rows[ROOT + 1] = Row(ROOT + 1, ROOT, "FILE", "f", "ada", "staff", 5, AT_MS + 9 * DAY)
    export = open_export(write_export(tmp_path / "future", rows))
    assert export.source.as_of_ms == AT_MS
