"""Offers a merged image to the NameNodes; the active takes it, or says why not."""

import asyncio
from pathlib import Path
from typing import assert_never

import structlog

from ha.conf.topology import NameNodeAddress
from ha.daemon import event_loop
from ha.record import dataclass, replace
from journal.model import Epoch, NamespaceInfo, TxId
from namenode_sim.checkpoint.image_upload import UploadFailed, UploadSuperseded, upload_image
from namenode_sim.checkpoint.schedule import UploadAnswer
from spark.ends.sinks.model import Published, SinkFailed, SinkOutcome, SinkRefused, UploadVerdict
from spark.ends.sources.cluster import Cluster, view
from spark.ends.sources.model import ReportStep, SourceError, Staged

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Offered:
    """The verdict, the NameNode that gave it, and its words if they are worth telling."""

    verdict: UploadVerdict
    by: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """An image to be offered, with its file system and the epoch of its edits."""

    image: Path
    txid: TxId
    namespace: NamespaceInfo
    epoch: Epoch | None


async def offer_to_all(cluster: Cluster, offer: Offer) -> Offered:
    """Offer the image to the active, and once that has it to the others.

    Standbys that make no images of their own take it, so that their restart is short and needs no
    edits that are purged by now.  Their word changes nothing: they have another chance next time.

    Raises:
        ImageError, OSError: if our own copy cannot be read.
    """
    try:
        active = (await view(cluster)).active
    except SourceError as failure:
        return Offered(UploadVerdict.FAILED, why=str(failure))
    if active is None:
        return Offered(UploadVerdict.NO_ACTIVE, why="no NameNode is active")
    by_name = {one.namenode: one for one in cluster.namenodes}
    offered = await _offer_to(cluster, by_name.pop(active), offer)
    if offered.verdict is UploadVerdict.TAKEN:
        # Without the epoch: that is the active's, and a standby writes under none.
        for_standbys = replace(offer, epoch=None)
        told = await asyncio.gather(
            *(_offer_to(cluster, one, for_standbys) for one in by_name.values())
        )
        for each in told:
            log.info("upload.standby", namenode=each.by, answer=each.verdict.name, why=each.why)
    return offered


async def _offer_to(cluster: Cluster, one: NameNodeAddress, offer: Offer) -> Offered:
    try:
        answer = await upload_image(
            one.http,
            offer.image,
            offer.txid,
            offer.namespace,
            stall_seconds=cluster.stall_seconds,
            bytes_per_second=cluster.bytes_per_second,
            epoch=offer.epoch,
        )
    except UploadSuperseded as refusal:
        return Offered(UploadVerdict.SUPERSEDED, one.namenode, str(refusal))
    except UploadFailed as failure:
        return Offered(UploadVerdict.FAILED, one.namenode, str(failure))
    match answer:
        case UploadAnswer.ACCEPTED:
            return Offered(UploadVerdict.TAKEN, one.namenode)
        case UploadAnswer.HAS_NEWER:
            return Offered(UploadVerdict.NOT_NEEDED, one.namenode)
        case UploadAnswer.NOT_ACTIVE:
            return Offered(UploadVerdict.NO_ACTIVE, one.namenode, f"{one.namenode} is not active")
        case UploadAnswer.FAILED:
            return Offered(UploadVerdict.FAILED, one.namenode, f"{one.namenode} failed")
        case _:
            assert_never(answer)


@dataclass(frozen=True, slots=True)
class UploadSink:
    """The NameNodes of a cluster.

    What is offered was staged from the same cluster, so it carries the epoch of its plan; an image
    from elsewhere carries none, and the cluster's ids are asked for.
    """

    cluster: Cluster

    def folder(self, work: Path) -> Path:
        """Return a folder in the work folder."""
        return work / "merged"

    def publish(self, image: Path, staged: Staged, tell: ReportStep) -> Published:
        """Offer it; see ``Sink``."""
        tell(f"offering {image.name} to the NameNodes")
        return event_loop.run(self._publish(image, TxId(int(image.name[-19:])), staged))

    async def _publish(self, image: Path, txid: TxId, staged: Staged) -> Published:
        try:
            namespace = staged.namespace or (await view(self.cluster)).namespace
            offered = await offer_to_all(self.cluster, Offer(image, txid, namespace, staged.epoch))
            match offered.verdict:
                case UploadVerdict.TAKEN:
                    return Published(SinkOutcome.PUBLISHED, f"NameNode {offered.by}")
                case UploadVerdict.NOT_NEEDED:
                    newest = (await view(self.cluster)).image_txid
                    if newest >= txid:
                        where = f"NameNode {offered.by}, up to transaction {newest}"
                        return Published(SinkOutcome.ALREADY_THERE, where)
                    raise SinkRefused(
                        f"{offered.by} does not need {image.name}: it has taken an image lately, "
                        "or is taking one. Try again later"
                    )
                case UploadVerdict.SUPERSEDED:
                    raise SinkRefused(f"superseded: {offered.why}. Run the merge again")
                case UploadVerdict.NO_ACTIVE | UploadVerdict.FAILED:
                    raise SinkFailed(f"{image.name} was not taken: {offered.why}")
                case _:
                    assert_never(offered.verdict)
        except SourceError as failure:
            raise SinkFailed(f"{image.name} was not taken: {failure}") from failure
