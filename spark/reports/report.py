"""Makes a report of one export, or of two of the same namespace.  Pure."""

from collections.abc import Collection, Mapping

import numpy as np

from ha.record import dataclass
from spark.reports import model
from spark.reports.batch import NOTHING, Directories, Words
from spark.reports.export import Export
from spark.reports.growth import Growth, TreeChanges, tree_changes
from spark.reports.model import NotAnExport
from spark.reports.sums import Ints, bucket_sums
from spark.reports.tally import Tally, buckets
from spark.reports.trees import described, direct, first, spread, subtree_sums, telling

ENTRIES_LIMIT = 1 << 20
"""dfs.namenode.fs-limits.max-directory-items, by default."""
_ENTRY_EDGES = np.array([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000], np.int64)
_SPREAD_PERCENT = 90


@dataclass(frozen=True, slots=True)
class _Read:
    """All that one pass over an export gave, but paths."""

    export: Export
    settings: model.Settings
    tally: Tally
    words: Words
    directories: Directories
    by_parent: tuple[Ints, Mapping[str, Ints]]

    def own(self, name: str) -> Ints:
        """Return a sum over direct files, as a column of the directories."""
        ids, sums = self.by_parent
        return direct(self.directories, ids, sums[name])


def make_report(
    export: Export,
    settings: model.Settings,
    sections: Collection[model.Section],
    since: Export | None = None,
) -> model.NamespaceReport:
    """Compute the sections that are asked for; growth needs ``since``.

    Raises ExportDamaged, or NotAnExport when ``since`` is not the older of the two.
    """
    if since is not None and since.source.txid > export.source.txid:
        raise NotAnExport(
            f"{since.folder} (transaction {since.source.txid}) is newer than {export.folder} "
            f"({export.source.txid}): growth is from the older to the newer"
        )
    tally, words = Tally(settings), Words()
    growth = None
    if since is not None and model.Section.GROWTH in sections:
        growth = Growth(*since.file_lengths())
    for batch in export.inodes(words):
        tally.add(batch)
        if growth is not None:
            growth.newer(batch)
    read = _Read(export, settings, tally, words, export.directories(), tally.parents())
    total, users, groups = tally.owners(words.names())
    return model.NamespaceReport(
        source=export.source,
        settings=settings,
        usage=model.UsageSection(total, tally.under_construction, users, groups)
        if model.Section.USAGE in sections
        else None,
        directories=_directories(read) if model.Section.DIRECTORIES in sections else None,
        small_files=_small(read, total, users) if model.Section.SMALL_FILES in sections else None,
        age=_age(read, total, users) if model.Section.AGE in sections else None,
        redundancy=_redundancy(read) if model.Section.REDUNDANCY in sections else None,
        quota=_quota(read) if model.Section.QUOTA in sections else None,
        largest=_largest(read) if model.Section.LARGEST in sections else None,
        growth=_growth(read, since, growth) if since is not None and growth is not None else None,
    )


def _directories(read: _Read) -> model.DirectoriesSection:
    tree, top = read.directories, read.settings.top
    everything = np.arange(len(tree.id))
    lists = [
        first(everything, tree.bytes, tree.id, top),
        first(everything, tree.files, tree.id, top),
        *(
            first(np.flatnonzero(telling(tree.parent, amounts)), amounts, tree.id, top)
            for amounts in (tree.subtree_bytes, tree.subtree_files)
        ),
    ]
    paths = read.export.paths(int(tree.id[row]) for rows in lists for row in rows)
    return model.DirectoriesSection(*(described(tree, rows, paths) for rows in lists))


def _small(
    read: _Read, total: model.Usage, users: tuple[model.Usage, ...]
) -> model.SmallFilesSection:
    tree = read.directories
    files, sums = read.own("small_files"), read.own("small_bytes")
    rows = first(np.arange(len(tree.id)), files, tree.id, read.settings.top)
    return model.SmallFilesSection(
        read.settings.small_below,
        total.small_files,
        total.small_bytes,
        read.tally.sizes(),
        _most(users, "small_files", read.settings.top),
        _heaps(read, rows, files, sums, (tree.files, tree.bytes)),
    )


def _most(users: tuple[model.Usage, ...], name: str, count: int) -> tuple[model.Usage, ...]:
    found = [user for user in users if getattr(user, name)]
    found.sort(key=lambda user: (-getattr(user, name), user.name))
    return tuple(found[:count])


def _age(read: _Read, total: model.Usage, users: tuple[model.Usage, ...]) -> model.AgeSection:
    settings = read.settings
    rows, files, sums = _trees_of(read, "cold")
    tree = read.directories
    return model.AgeSection(
        settings.as_of_ms,
        settings.cold_days,
        total.cold_files,
        total.cold_bytes,
        read.tally.used(),
        read.tally.modified(),
        _most(users, "cold_bytes", settings.top),
        _heaps(read, rows, files, sums, (tree.subtree_files, tree.subtree_bytes)),
    )


def _trees_of(read: _Read, kind: str) -> tuple[Ints, Ints, Ints]:
    """Return the largest trees that are such files by nine tenths, with files and bytes."""
    tree = read.directories
    files = subtree_sums(tree, read.own(f"{kind}_files"))
    sums = subtree_sums(tree, read.own(f"{kind}_bytes"))
    mostly = spread(tree, sums, tree.subtree_bytes, _SPREAD_PERCENT)
    return first(np.flatnonzero(mostly), sums, tree.id, read.settings.top), files, sums


def _redundancy(read: _Read) -> model.RedundancySection:
    rows, files, sums = _trees_of(read, "coded")
    tree = read.directories
    saved = subtree_sums(tree, read.own("saved_bytes"))
    _, totals = read.by_parent
    return model.RedundancySection(
        read.tally.kinds(),
        int(totals["coded_files"].sum()),
        int(totals["coded_bytes"].sum()),
        int(totals["saved_bytes"].sum()),
        _heaps(read, rows, files, sums, (tree.subtree_files, tree.subtree_bytes), saved),
    )


def _heaps(
    read: _Read,
    rows: Ints,
    files: Ints,
    sums: Ints,
    of: tuple[Ints, Ints],
    saved: Ints | None = None,
) -> tuple[model.Heap, ...]:
    paths = read.export.paths(int(read.directories.id[row]) for row in rows)
    return tuple(
        model.Heap(
            paths[int(read.directories.id[row])],
            int(files[row]),
            int(sums[row]),
            int(of[0][row]),
            int(of[1][row]),
            0 if saved is None else int(saved[row]),
        )
        for row in rows
    )


def _quota(read: _Read) -> model.QuotaSection:
    ids, names, space = read.tally.quotas()
    tree = read.directories
    rows = {int(number): row for row, number in enumerate(tree.id)} if len(ids) else {}
    disk = subtree_sums(tree, read.own("disk_bytes")) if len(ids) else tree.bytes
    paths = read.export.paths(int(number) for number in ids)
    found = []
    for number, of_names, of_space in zip(
        ids.tolist(), names.tolist(), space.tolist(), strict=True
    ):
        row = rows.get(number, NOTHING)
        if row == NOTHING:
            continue
        # A directory counts against its own quota of names (DirectoryWithQuotaFeature).
        used = 1 + int(tree.subtree_files[row]) + int(tree.subtree_directories[row])
        found.append(_quota_of(paths[number], of_names, used, of_space, int(disk[row])))
    found.sort(key=lambda quota: (-quota.used_percent, quota.path))
    return model.QuotaSection(len(found), tuple(found[: read.settings.top]))


def _quota_of(path: str, names: int, names_used: int, space: int, space_used: int) -> model.Quota:
    shares = [0.0]
    for quota, used in ((names, names_used), (space, space_used)):
        if quota != NOTHING:
            shares.append(100 * used / quota if quota else 100.0)
    return model.Quota(
        path,
        None if names == NOTHING else names,
        names_used,
        None if space == NOTHING else space,
        space_used,
        round(max(shares), 2),
    )


def _largest(read: _Read) -> model.LargestSection:
    tree = read.directories
    entries = tree.files + tree.subdirectories
    rows = first(np.arange(len(tree.id)), entries, tree.id, read.settings.top)
    paths = read.export.paths(int(tree.id[row]) for row in rows)
    sizes = buckets(_ENTRY_EDGES, *bucket_sums(_ENTRY_EDGES, entries, tree.bytes))
    return model.LargestSection(ENTRIES_LIMIT, described(tree, rows, paths), sizes)


def _growth(read: _Read, since: Export, growth: Growth) -> model.GrowthSection:
    for batch in since.inodes(read.words):
        growth.older(batch)
    changes = tree_changes(since.directories(), read.directories)
    more_bytes = changes.after_bytes - changes.before_bytes
    more_files = changes.after_files - changes.before_files
    lists = [
        changes.largest(amounts, read.settings.top)
        for amounts in (more_bytes, -more_bytes, more_files)
    ]
    paths = _paths_of_changes(read.export, since, changes, lists)
    total, users = growth.flows(read.words.names())
    return model.GrowthSection(
        since.source,
        round((read.export.source.as_of_ms - since.source.as_of_ms) / model.DAY_MS, 3),
        total,
        users,
        *(changes.described(rows, paths) for rows in lists),
    )


def _paths_of_changes(
    export: Export, since: Export, changes: TreeChanges, lists: list[Ints]
) -> dict[int, str]:
    shown = np.unique(np.concatenate(lists))
    gone = shown[changes.newer_row[shown] == NOTHING]
    there = shown[changes.newer_row[shown] != NOTHING]
    paths = since.paths(int(changes.id[row]) for row in gone)
    return paths | export.paths(int(changes.id[row]) for row in there)
