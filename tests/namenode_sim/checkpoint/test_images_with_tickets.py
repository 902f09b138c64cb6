"""An image goes up to a NameNode whose pages take tickets of a KDC of the test."""

from pathlib import Path

import pytest

from ha.security.kerberos.own import log_in
from namenode_sim.checkpoint.image_upload import UploadFailed
from namenode_sim.checkpoint.schedule import UploadAnswer
from tests.ha.daemon.kerberized_pages import access_of, conf_of
from tests.ha.rpc.kerberized import alice, logged_in
from tests.ha.security.kdc import Kdc
from tests.namenode_sim.checkpoint.image_receiving import TXID, receiving
from tests.namenode_sim.checkpoint.test_image_receive import NAMES, offer, saved_image


async def test_only_a_namenodes_ticket_takes_an_image_up(realm: Kdc, tmp_path: Path) -> None:
    conf, image = conf_of(realm, tmp_path), saved_image(tmp_path / "from")
    access, _ = access_of(conf)
    async with receiving(tmp_path, access) as (active, at):
        log_in(None)
        with pytest.raises(UploadFailed, match="401"):
            await offer(at, image)
        with (
            logged_in(alice(conf, realm, "jn/localhost")),
            pytest.raises(UploadFailed, match="PUT /imagetransfer is for namenode"),
        ):
            await offer(at, image)
        with (
            logged_in(alice(conf, realm, "nobody")),
            pytest.raises(UploadFailed, match="no Kerberos tickets"),
        ):
            await offer(at, image)
        assert active.files() == []
        with logged_in(alice(conf, realm, "nn/localhost")):
            assert await offer(at, image) is UploadAnswer.ACCEPTED
        assert active.files() == NAMES
        assert active.got == [(TXID, 2)]
