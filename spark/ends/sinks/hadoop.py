"""A directory on a Hadoop file system: written elsewhere, then renamed, the digest first."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ha.record import dataclass
from namenode_sim.image.files import digest_path
from spark.ends.hadoop_files import HadoopFileError, HadoopFiles, OpenHadoop
from spark.ends.sinks.model import Published, SinkFailed, SinkOutcome, SinkRefused
from spark.ends.sources.model import ReportStep, Staged


@dataclass(frozen=True, slots=True)
class HadoopSink:
    """The directory that the user named by its URI."""

    directory: str
    open_files: OpenHadoop

    def folder(self, work: Path) -> Path:
        """Return a folder in the work folder."""
        return work / "merged"

    def publish(self, image: Path, staged: Staged, tell: ReportStep) -> Published:
        """Copy it there; see ``Sink``."""
        del staged
        place = self.directory.rstrip("/")
        tell(f"copying {image.name} to {place}")
        try:
            return _publish(self.open_files(), image, place)
        except HadoopFileError as failure:
            raise SinkFailed(f"{image.name} was not published: {failure}") from failure


def _publish(files: HadoopFiles, image: Path, place: str) -> Published:
    digest, target = digest_path(image), f"{place}/{image.name}"
    if files.find(target) is not None:
        if _same_digest(files, digest, f"{target}.md5"):
            return Published(SinkOutcome.ALREADY_THERE, target)
        raise SinkRefused(
            f"{target} exists and is another image of the same transaction, or has no digest. It "
            "was not touched; give another place, or move it away if you are sure"
        )
    files.make_directory(place)
    beside = [(path, f"{place}/_{path.name}.tmp") for path in (digest, image)]
    try:
        for path, temporary in beside:
            files.put(path, temporary)
        # A digest without an image is harmless, and left by whoever was killed between the two.
        files.delete(f"{target}.md5")
        for path, temporary in beside:
            files.rename(temporary, f"{place}/{path.name}")
    finally:
        for _, temporary in beside:
            files.delete(temporary)
    return Published(SinkOutcome.PUBLISHED, target)


def _same_digest(files: HadoopFiles, ours: Path, theirs: str) -> bool:
    if files.find(theirs) is None:
        return False
    with TemporaryDirectory(prefix="nnha-digest-") as folder:
        copy = Path(folder) / "digest"
        files.get(theirs, copy)
        return copy.read_bytes().split() == ours.read_bytes().split()
