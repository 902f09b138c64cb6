"""The sheets of what files are like: small ones, and old ones."""

from spark.reports.figures import Bars, FigureKind, Sheet
from spark.reports.model import AgeSection, Bucket, SmallFilesSection
from spark.reports.sheets.rows import bars, buckets_grid, heaps_grid, range_of, share, users_grid
from spark.reports.units import full, percent, size, trim


def small_sheet(part: SmallFilesSection) -> Sheet:
    """Show which users have small files, where they lie, and how large files are at all."""
    below = trim(size(part.small_below))
    files = sum(bucket.files for bucket in part.sizes)
    held = sum(bucket.bytes for bucket in part.sizes)
    lead = (
        f"{full(part.files)} files are smaller than {below}: {percent(share(part.files, files))} "
        f"of all files, with {percent(share(part.bytes, held))} of the bytes ({size(part.bytes)})."
    )
    names = [range_of(bucket, size) for bucket in part.sizes]
    return Sheet(
        "small-files",
        "Small files",
        lead,
        (
            Bars(
                "small-files-sizes",
                "Files and bytes by the size of the file",
                FigureKind.PERCENT,
                tuple(
                    (name, (share(bucket.files, files), share(bucket.bytes, held)))
                    for name, bucket in zip(names, part.sizes, strict=True)
                ),
                ("of the files", "of the bytes"),
            ),
            Bars(
                "small-files-by-user",
                f"Files below {below} by user",
                FigureKind.COUNT,
                bars((user.name, user.small_files) for user in part.users),
            ),
            Bars(
                "small-files-by-directory",
                f"Files below {below} directly in a directory",
                FigureKind.COUNT,
                bars((heap.path, heap.files) for heap in part.directories),
            ),
            buckets_grid("Sizes of files", "size", names, part.sizes),
            users_grid(f"Users with files below {below}", part.users, "small"),
            heaps_grid(f"Directories with files below {below}", "small", part.directories),
        ),
    )


def age_sheet(part: AgeSection) -> Sheet:
    """Show when files were last used and written, and which trees are never read."""
    held = sum(bucket.bytes for bucket in part.used)
    lead = (
        f"{size(part.cold_bytes)} in {full(part.cold_files)} files "
        f"({percent(share(part.cold_bytes, held))} of the bytes) were neither read nor written for "
        f"{part.cold_days} days."
    )
    names = [age_range(bucket) for bucket in part.used]
    return Sheet(
        "age",
        "Age and cold data",
        lead,
        (
            Bars(
                "age-bytes",
                "Bytes by age",
                FigureKind.SIZE,
                tuple(
                    (name, (float(used.bytes), float(modified.bytes)))
                    for name, used, modified in zip(names, part.used, part.modified, strict=True)
                ),
                ("last used (read or written)", "last written"),
            ),
            Bars(
                "age-cold-trees",
                f"Trees not used for {part.cold_days} days",
                FigureKind.SIZE,
                bars((heap.path, heap.bytes) for heap in part.trees),
            ),
            Bars(
                "age-cold-by-user",
                f"Bytes not used for {part.cold_days} days, by user",
                FigureKind.SIZE,
                bars((user.name, user.cold_bytes) for user in part.users),
            ),
            buckets_grid("By the time since the last use", "last used", names, part.used),
            buckets_grid("By the time since the last write", "last written", names, part.modified),
            users_grid("Users with cold files", part.users, "cold"),
            heaps_grid("Trees that are cold by nine tenths of their bytes", "cold", part.trees),
        ),
    )


def age_range(bucket: Bucket) -> str:
    """Return a bucket of ages in words."""
    if bucket.below is None:
        return f"{_days(bucket.at_least)} or more"
    return (
        f"{_days(bucket.at_least)} to {_days(bucket.below)}"
        if bucket.at_least
        else "less than 1 day"
    )


def _days(count: int) -> str:
    if count >= 365 and count % 365 == 0:
        return f"{count // 365} year{'s' if count > 365 else ''}"
    return f"{count} day{'s' if count > 1 else ''}"
