"""An image and edits on a Hadoop file system, copied to local storage by Spark's driver.

<work>/hadoop-<hash of the URIs>/fsimage_N  fsimage_N.md5  edits_A-B ...
"""

import hashlib
from pathlib import Path

import structlog

from ha.record import dataclass
from journal.model import Segment, TxId
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, digest_path
from namenode_sim.storage.retention import IMAGE
from spark.ends.hadoop_files import HadoopFile, HadoopFileError, HadoopFiles, OpenHadoop
from spark.ends.sources.directory import refuse_without_edits, staged_here
from spark.ends.sources.model import ReportStep, SourceError, Staged
from spark.ends.sources.segments import PART_SUFFIX, why_unsound

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HadoopSource:
    """Files named by URIs; either may be a directory, as with ``DirectorySource``."""

    image: str
    edits: str
    open_files: OpenHadoop

    def stage(self, work: Path, tell: ReportStep) -> Staged:
        """Copy what is not here yet; see ``Source``."""
        places = f"{self.image}\n{self.edits}".encode()
        folder = work / f"hadoop-{hashlib.sha256(places).hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return self._stage(self.open_files(), folder, tell)
        except HadoopFileError as failure:
            raise SourceError(str(failure)) from failure

    def _stage(self, files: HadoopFiles, folder: Path, tell: ReportStep) -> Staged:
        remote = self._image(files)
        local, image_bytes = _have_image(files, remote, folder, tell)
        base = int(IMAGE.fullmatch(remote.name)[1])  # type: ignore[index]
        fetched, reused = image_bytes, image_bytes == 0
        count = int(reused)
        there = files.list(_current(files, self.edits))
        refuse_without_edits((file.name for file in there), self.edits)
        wanted = [file for file in there if _behind(file, base)]
        for path in folder.iterdir():
            if path.name not in {local.name, f"{local.name}.md5", *(file.name for file in wanted)}:
                path.unlink()
        for file in wanted:
            size = _have_segment(files, file, folder, tell)
            fetched, count = fetched + size, count + (size == 0)
        try:
            staged = staged_here(local, folder)
        except EditsError as problem:
            name = Path(problem.file or "").name
            raise problem.at(f"{self.edits.rstrip('/')}/{name}") from problem
        return Staged(
            image=local,
            edits=folder,
            base_txid=staged.base_txid,
            last_txid=staged.last_txid,
            fetched_bytes=fetched,
            reused_files=count,
        )

    def _image(self, files: HadoopFiles) -> HadoopFile:
        found = files.find(self.image)
        if found is None:
            raise SourceError(f"{self.image} does not exist; give an fsimage_N or its directory")
        if found.is_directory:
            inside = files.list(_current(files, self.image))
            images = {int(m[1]): file for file in inside if (m := IMAGE.fullmatch(file.name))}
            if not images:
                raise SourceError(f"{self.image} holds no fsimage_N; give another directory")
            return images[max(images)]
        if IMAGE.fullmatch(found.name) is None:
            raise SourceError(
                f"{self.image} is not named fsimage_N, so nobody can tell which edits it holds"
            )
        return found


def _current(files: HadoopFiles, uri: str) -> str:
    """Return the ``current`` in a directory if it has one, else the directory."""
    inside = f"{uri.rstrip('/')}/current"
    found = files.find(inside)
    return inside if found is not None and found.is_directory else uri


def _behind(file: HadoopFile, base: int) -> bool:
    promised = named_range(file.name)
    finalized = promised is not None and promised.last is not None and "." not in file.name
    return finalized and promised is not None and (promised.last or 0) > base


def _have_image(
    files: HadoopFiles, remote: HadoopFile, folder: Path, tell: ReportStep
) -> tuple[Path, int]:
    """Copy the image, if it is not here, and its digest; return how many bytes were copied."""
    local = folder / remote.name
    files.get(f"{remote.uri}.md5", digest_path(local))
    if local.exists() and local.stat().st_size == remote.length:
        try:
            check_digest(local)
        except ImageError as problem:
            log.warning("source.image_unsound", path=str(local), why=str(problem))
        else:
            return local, 0
    tell(f"copying {remote.uri}")
    _copy(files, remote, local)
    try:
        check_digest(local)
    except ImageError as problem:
        local.unlink()
        raise SourceError(
            f"{remote.uri} does not fit {remote.name}.md5 beside it: {problem}"
        ) from problem
    return local, remote.length


def _have_segment(files: HadoopFiles, remote: HadoopFile, folder: Path, tell: ReportStep) -> int:
    """Copy the segment, if it is not here whole; return how many bytes were copied."""
    promised = named_range(remote.name)
    assert promised is not None
    assert promised.last is not None
    segment = Segment(promised.first, TxId(promised.last), finalized=True)
    local = folder / remote.name
    if local.exists() and local.stat().st_size == remote.length and not why_unsound(local, segment):
        return 0
    tell(f"copying {remote.uri}")
    _copy(files, remote, local)
    if why := why_unsound(local, segment):
        local.unlink()
        raise SourceError(f"{remote.uri} is damaged: {why}. Take it from another directory")
    return remote.length


def _copy(files: HadoopFiles, remote: HadoopFile, local: Path) -> None:
    beside = local.with_name(local.name + PART_SUFFIX)
    files.get(remote.uri, beside)
    if beside.stat().st_size != remote.length:
        came = beside.stat().st_size
        beside.unlink()
        raise SourceError(f"{remote.uri} changed while it was copied: {came} bytes came")
    beside.replace(local)
