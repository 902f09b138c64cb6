"""Judge each segment file at start by its record: sound, torn, empty, or damaged.

A torn tail was never acknowledged, and is cut.  Damage is bytes that are not what was written
and acknowledged: such a copy must not be voted with, as its end is not the journal's end.
"""

from collections.abc import Mapping
from pathlib import Path

import structlog

from ha.record import dataclass, field, replace
from journal.core.state import Damage
from journal.errors import StorageFailed
from journal.model import NO_EPOCH, Epoch, Segment, TxId
from journal.storage import layout
from journal.storage.files import Files
from journal.storage.records import SegmentRecord, parse_record
from journal.storage.segment_file import Contents, inspect, read_layout

log = structlog.get_logger()

Records = Mapping[TxId, SegmentRecord | StorageFailed]
"""What lies in ``segments``; a record that cannot be read stands as the reason."""


@dataclass(slots=True)
class Judged:
    """The catalogue as it grows, and the offsets behind the last edits."""

    segments: dict[TxId, Segment] = field(default_factory=dict)
    damaged: dict[TxId, Damage] = field(default_factory=dict)
    ends: dict[TxId, int] = field(default_factory=dict)

    def hurt(self, segment: Segment, why: str, size_bytes: int = 0) -> None:
        log.error("segment.damaged", file=segment.name(), because=why)
        self.damaged[segment.first] = Damage(segment, why, size_bytes)


def load_records(files: Files, folder: Path, live: set[TxId]) -> Records:
    """Read the records of live segments; the others mean nothing, and are removed."""
    records: dict[TxId, SegmentRecord | StorageFailed] = {}
    names = files.names(folder)
    if any(layout.segment_start(name) not in live for name in names):
        # A file may have been moved aside in the page cache only.  After a power cut it would have
        # its name again, and its writer would be unknown.
        files.sync_folder(folder.parent)
    for name in names:
        first = layout.segment_start(name)
        data = files.read(folder / name)
        if first not in live or data is None:
            files.remove(folder / name)
            continue
        try:
            records[first] = parse_record(folder / name, first, data)
        except StorageFailed as failure:
            log.warning("segment.record_corrupt", file=name, because=str(failure))
            records[first] = failure
    return records


def judge_finalized(
    files: Files, current: Path, first: TxId, last: TxId, records: Records, judged: Judged
) -> None:
    """Take the digest from the record; without one it is computed when it is asked for.

    What a record cannot see without reading the whole file is left to the scrubber.
    """
    segment = Segment(first, last, finalized=True)
    record = records.get(first)
    if isinstance(record, SegmentRecord) and record.describes(last):
        segment = replace(
            segment,
            digest=record.digest,
            writer=record.writer,
            layout_version=record.layout_version,
        )
        path = current / segment.name()
        found, size = read_layout(files, path), files.size(path)
        if record.layout_version not in (0, found):
            judged.hurt(segment, f"its header says {found}, not layout {record.layout_version}")
            return
        if size < record.end:
            judged.hurt(segment, f"it has {size} bytes of {record.end}")
            return
        judged.ends[first] = record.end
    judged.segments[first] = segment


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges abandoned in-progress files.

    Args:
        committed: what is known to be on a quorum; edits up to there are no torn tail.
        stand_in: the node's last writer, for the newest segment if its own was not recorded.
    """

    files: Files
    current: Path
    committed: TxId
    stand_in: Epoch
    judged: Judged

    def judge(self, first: TxId, record: SegmentRecord | StorageFailed | None) -> None:
        """Scan one file.  One without an edit is moved aside."""
        path = self.current / layout.in_progress_name(first)
        contents = inspect(self.files, path, first)
        known = record if isinstance(record, SegmentRecord) else None
        sound = Segment(
            first,
            contents.last if contents.last is not None else TxId(first - 1),
            finalized=False,
            digest=contents.digest,
            writer=self.stand_in if record is None else NO_EPOCH if known is None else known.writer,
            layout_version=contents.layout_version,
        )
        why = self._why_damaged(contents, record, first)
        if why is not None:
            self.judged.hurt(sound, why, self.files.size(path))
        elif contents.last is None:
            aside = "empty" if contents.damage is None else "corrupt"
            self.move_aside(first, aside, contents.damage or "it holds no transaction")
        else:
            self._keep(path, sound, contents)

    def move_aside(self, first: TxId, suffix: str, why: str) -> None:
        path = self.current / layout.in_progress_name(first)
        self.files.rename(path, path.with_name(layout.aside_name(path.name, suffix)))
        log.info("segment.moved_aside", file=path.name, suffix=suffix, why=why)

    def _keep(self, path: Path, sound: Segment, contents: Contents) -> None:
        if contents.damage is not None:
            log.warning(
                "segment.torn",
                file=path.name,
                sound_up_to=sound.last,
                offset=contents.end,
                found=contents.damage,
            )
            # Left there, it would look like damage once later edits are committed elsewhere.
            self.files.truncate(path, contents.end)
        self.files.sync_file(path)
        self.judged.ends[sound.first] = contents.end
        self.judged.segments[sound.first] = sound

    def _why_damaged(
        self, contents: Contents, record: SegmentRecord | StorageFailed | None, first: TxId
    ) -> str | None:
        last = contents.last if contents.last is not None else TxId(first - 1)
        found = contents.damage or "the end of the file"
        if isinstance(record, StorageFailed):
            # Without its writer's epoch it can neither win nor lose against another copy.
            return str(record)
        if record is not None:
            if record.layout_version not in (0, contents.layout_version):
                return f"its header says {contents.layout_version}, not {record.layout_version}"
            if record.last is not None and last < record.last:
                return f"{record.last} was its end once, now it is {last}: {found}"
            if record.describes(last) and contents.digest != record.digest:
                return f"its edits up to {last} are not those that were written"
        if contents.damage is not None and first <= self.committed and last < self.committed:
            return f"at byte {contents.end}, though {self.committed} was committed: {found}"
        return None
