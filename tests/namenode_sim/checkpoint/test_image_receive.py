"""PUT /imagetransfer against real directories and sockets."""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from aiohttp import ClientSession

from ha.conf.topology import HostPort
from journal.model import Epoch, TxId
from namenode_sim.checkpoint.image_upload import UploadFailed, UploadSuperseded, upload_image
from namenode_sim.checkpoint.schedule import UploadAnswer
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from tests.namenode_sim.checkpoint.image_receiving import IMAGE, TXID, Active, receiving
from tests.worlds.files import info, save

GZIP = "org.apache.hadoop.io.compress.GzipCodec"


def saved_image(folder: Path) -> Path:
    folder.mkdir()
    path = folder / image_name(TXID)
    save_image(IMAGE, path, info())
    return path


async def offer(at: HostPort, image: Path, epoch: int | None = None) -> UploadAnswer:
    under = None if epoch is None else Epoch(epoch)
    return await upload_image(at, image, TXID, info(), stall_seconds=20, epoch=under)


NAMES = [
    f"{where}/{image_name(TXID)}{suffix}" for where in ("one", "two") for suffix in ("", ".md5")
]


async def test_an_image_is_taken_into_all_directories_and_can_be_loaded(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.files() == NAMES
        assert active.got == [(TXID, 2)]
        assert active.storage.load().last_applied == TXID
        for copy in active.storage.newest_images():
            assert copy.read_bytes() == image.read_bytes()


async def test_a_standby_refuses_before_the_body_is_sent(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        active.active = False
        assert await offer(at, image) is UploadAnswer.NOT_ACTIVE
        assert active.files() == []


async def test_a_standby_that_saves_nothing_takes_what_it_has_replayed(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        active.active, active.follows_to = False, TxId(TXID - 1)
        assert await offer(at, image) is UploadAnswer.NOT_ACTIVE  # ahead of what it knows
        active.follows_to = TXID
        assert await offer(at, image, epoch=3) is UploadAnswer.NOT_ACTIVE  # meant for an active
        assert active.files() == []
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.files() == NAMES


async def test_what_is_there_or_not_needed_is_refused_and_leaves_nothing_registered(
    tmp_path: Path,
) -> None:
    """Hadoop's trap: a refused upload stays in the list of those under way, for good."""
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert await offer(at, image) is UploadAnswer.HAS_NEWER
        for path in active.storage.newest_images():
            path.unlink()
        # The receiver took one a moment ago; so soon, so few edits later, none is needed.
        assert await offer(at, image) is UploadAnswer.HAS_NEWER
    async with receiving(tmp_path / "again", edits=1) as (active, at):
        assert await offer(at, image) is UploadAnswer.ACCEPTED


async def test_a_checkpoint_planned_under_another_epoch_is_refused(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        with pytest.raises(UploadSuperseded, match=r"planned under epoch 2.*writes under 3"):
            await offer(at, image, epoch=2)
        assert active.files() == []
        assert await offer(at, image, epoch=3) is UploadAnswer.ACCEPTED


async def answered(
    active: Active, at: HostPort, data: bytes, meanwhile: Callable[[], object]
) -> int:
    """Return how an upload is answered while which something happens."""
    slow = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield data[:100]
        await slow.wait()
        yield data[100:]

    async with ClientSession() as session:
        put = asyncio.create_task(_put(session, at, body(), data))
        async with asyncio.timeout(30):
            while not any("ckpt" in name for name in active.files()):
                await asyncio.sleep(0.01)
        meanwhile()
        slow.set()
        return await put


async def test_a_term_that_ends_during_the_transfer_publishes_nothing(tmp_path: Path) -> None:
    data = saved_image(tmp_path / "from").read_bytes()
    async with receiving(tmp_path) as (active, at):
        ended = partial(setattr, active, "active", False)
        assert await answered(active, at, data, ended) == 417
        assert active.files() == []


async def test_what_was_saved_of_the_same_edits_meanwhile_stays_sound(tmp_path: Path) -> None:
    """Demote a NameNode during a transfer: it saves its namespace, and is active again."""
    data = save(IMAGE, tmp_path / "from", codec=GZIP).read_bytes()
    async with receiving(tmp_path) as (active, at):
        assert await answered(active, at, data, partial(active.storage.save, IMAGE)) == 409
        assert active.files() == NAMES
        for copy in active.storage.newest_images():
            assert load_image(copy).last_applied == TXID


async def test_a_sender_is_not_cut_off_by_a_saving(tmp_path: Path) -> None:
    """Delete what a saving makes superfluous, and not what has no name yet."""
    data = saved_image(tmp_path / "from").read_bytes()
    async with receiving(tmp_path) as (active, at):
        older = active.storage.load()
        older.last_applied = TxId(1)
        assert await answered(active, at, data, partial(active.storage.save, older)) == 200
        assert active.storage.newest_txid() == TXID


async def _put(
    session: ClientSession, at: HostPort, body: object, data: bytes, **other: str
) -> int:
    query = {
        "txid": str(TXID),
        "storageInfo": info().storage_info(),
        "File-Length": str(len(data)),
        "imageFile": "IMAGE",
        **other,
    }
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    url = f"http://{at}/imagetransfer"
    headers = {"X-MD5-Digest": digest}
    async with session.put(url, params=query, data=body, headers=headers) as answer:
        return answer.status


BAD = {
    "no length": ({"File-Length": "0"}, 410),
    "no txid": ({"txid": "x"}, 410),
    "a huge txid": ({"txid": "9" * 30}, 410),
    "another cluster": ({"storageInfo": "-65:7:0:CID-other"}, 403),
    "more than the disk holds": ({"File-Length": "9" * 17}, 410),
    "shorter than announced": ({"File-Length": "1000000"}, 410),
    "longer than announced": ({"File-Length": "10"}, 410),
    "a rollback image": ({"imageFile": "IMAGE_ROLLBACK"}, 410),
}


@pytest.mark.parametrize("case", BAD)
async def test_bad_offers_leave_nothing_behind(tmp_path: Path, case: str) -> None:
    query, status = BAD[case]
    data = saved_image(tmp_path / "from").read_bytes()
    async with receiving(tmp_path) as (active, at), ClientSession() as session:
        assert await _put(session, at, data, data, **query) == status
        assert active.files() == []
        assert await _put(session, at, data, data) == 200


async def test_bytes_that_do_not_fit_the_digest_are_thrown_away(tmp_path: Path) -> None:
    data = saved_image(tmp_path / "from").read_bytes()
    async with receiving(tmp_path) as (active, at), ClientSession() as session:
        flipped = data[:50] + bytes([data[50] ^ 1]) + data[51:]
        assert await _put(session, at, flipped, data) == 410
        assert active.files() == []


def many_messages() -> bytes:
    """Return an image whose small section has no end: to collect it all exhausts the memory."""
    out = io.BytesIO()
    writer = ImageWriter(out, layout=-67)
    with writer.section("NS_INFO") as put:
        put(bytes(100_000))
    writer.finish()
    return out.getvalue()


NO_IMAGES = {
    "a flood of messages": (
        TXID,
        many_messages(),
        "is no fsimage: .*NS_INFO.* more than it announces",
    ),
    "garbage": (TXID, b"\0garbage" * 300, "is no fsimage"),
    "an image cut short": (TXID, None, "is no fsimage"),
    "another transaction's": (TXID - 1, b"", rf"holds edits up to {TXID}, not {TXID - 1}"),
}


@pytest.mark.parametrize("case", NO_IMAGES)
async def test_what_came_whole_but_is_no_such_image_is_not_kept(tmp_path: Path, case: str) -> None:
    """Older images and edits are deleted behind an image: this one could not be loaded."""
    txid, garbage, said = NO_IMAGES[case]
    image = saved_image(tmp_path / "from")
    whole = image.read_bytes()
    data = whole[:-9] if garbage is None else garbage or whole
    image.write_bytes(data)
    write_digest(image, hashlib.md5(data, usedforsecurity=False).hexdigest())
    async with receiving(tmp_path) as (active, at):
        with pytest.raises(UploadFailed, match=rf"410 .*{said}.*nothing of it was kept"):
            await upload_image(at, image, TxId(txid), info(), stall_seconds=20)
        assert [path.name for path in active.storage.newest_images()] == [image_name(TxId(0))] * 2
        assert not list(tmp_path.glob("*/current/fsimage.ckpt*"))
        assert active.got == []


async def test_an_image_of_edits_that_were_never_written_is_refused(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        active.written_to = TxId(TXID - 1)
        with pytest.raises(UploadFailed, match=rf"up to {TXID} .* written up to {TXID - 1}"):
            await offer(at, image)
        assert active.files() == []


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_directory_that_fails_is_dropped_and_the_image_taken(
    tmp_path: Path, made_anew: bool
) -> None:
    """Local edits make a lost `current` again; without its VERSION no image there can be loaded."""
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        current = tmp_path / "two" / "current"
        current.rename(tmp_path / "two" / "gone")
        if made_anew:
            current.mkdir()
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.got == [(TXID, 1)]
        assert active.storage.failed == (tmp_path / "two",)


async def test_a_first_directory_that_is_gone_is_dropped_as_any_other(tmp_path: Path) -> None:
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        (tmp_path / "one").rename(tmp_path / "gone")
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.storage.failed == (tmp_path / "one",)


@pytest.mark.parametrize("full", ["one", "two"])
async def test_a_disk_that_is_full_is_dropped_and_nothing_stays_on_it(
    tmp_path: Path, full: str
) -> None:
    """Closing a file tries to write once more what did not fit."""
    image = saved_image(tmp_path / "from")
    async with receiving(tmp_path) as (active, at):
        unfinished = tmp_path / full / "current" / f"fsimage.ckpt_{TXID:019d}.received"
        unfinished.symlink_to("/dev/full")
        assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.got == [(TXID, 1)]
        assert active.storage.failed == (tmp_path / full,)
        assert not unfinished.is_symlink()


async def test_a_sender_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    data = saved_image(tmp_path / "from").read_bytes()
    async with receiving(tmp_path, stall_seconds=0.2) as (active, at), ClientSession() as session:

        async def body() -> AsyncIterator[bytes]:
            yield data[:100]
            await asyncio.Event().wait()

        async with asyncio.timeout(30):
            assert await _put(session, at, body(), data) == 410
        assert active.files() == []
