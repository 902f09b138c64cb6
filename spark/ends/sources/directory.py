"""An image and edits in local directories: name directories, JournalNodes', or single files."""

from collections.abc import Iterable
from pathlib import Path

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.files import check_digest
from namenode_sim.storage.local_edits import chain, finalized_in
from namenode_sim.storage.retention import IMAGE
from spark.ends.sources.model import ReportStep, SourceError, Staged


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """Files that are on local storage already; nothing is copied.

    Args:
        image: ``fsimage_N``, or a directory whose newest image is meant (or its ``current``).
        edits: a directory with finalized segments, or with ``current`` that has them.
    """

    image: Path
    edits: Path

    def stage(self, work: Path, tell: ReportStep) -> Staged:
        """Check that no edit behind it is missing; see ``Source``.

        The digest is left to the merge, which does something else in the meantime.
        """
        del work  # nothing is kept there
        image = newest_image(self.image) if self.image.is_dir() else self.image
        if not image.is_file():
            raise SourceError(f"{image} does not exist; give an fsimage_N or a name directory")
        tell(f"taking {image}")
        edits = current_of(self.edits)
        refuse_without_edits((path.name for path in edits.iterdir()), str(edits))
        return staged_here(image, edits, check=False)


def staged_here(image: Path, edits: Path, *, check: bool = True) -> Staged:
    """Describe these files, if the image is sound and no edit behind it is missing.

    Args:
        image: ``fsimage_N``.
        edits: the folder with the segments.
        check: whether to compare the image with its digest.

    Raises:
        SourceError: if the image's name does not say which edits it holds.
        ImageError, EditsError: if the image is damaged, or edits are missing.
    """
    if check:
        check_digest(image)
    match = IMAGE.fullmatch(image.name)
    if match is None:
        raise SourceError(
            f"{image} is not named fsimage_N, so nobody can tell which edits it holds; rename it"
        )
    base = TxId(int(match[1]))
    segments = chain(finalized_in(edits), TxId(base + 1))
    last = segments[-1].last if segments else base
    return Staged(image=image, edits=edits, base_txid=base, last_txid=last, digest_checked=check)


def refuse_without_edits(names: Iterable[str], folder: str) -> None:
    """Raise SourceError for a folder of none of our nodes that has no segment: a mistyped one."""
    if not any(name == "VERSION" or named_range(name) is not None for name in names):
        raise SourceError(f"{folder} holds no edits_*; give the directory that has the segments")


def newest_image(folder: Path) -> Path:
    """Return the image of the most edits in a directory, or in its ``current``.

    Raises:
        SourceError: if there is none.
    """
    place = current_of(folder)
    found = {int(m[1]): path for path in place.iterdir() if (m := IMAGE.fullmatch(path.name))}
    if not found:
        raise SourceError(f"{place} holds no fsimage_N; give a name directory or an image")
    return found[max(found)]


def current_of(folder: Path) -> Path:
    """Return the ``current`` of a name or journal directory; any other folder itself.

    Raises:
        SourceError: if there is no such folder.
    """
    if not folder.is_dir():
        raise SourceError(f"{folder} is no directory; give one that has the segments")
    return folder / "current" if (folder / "current").is_dir() else folder
