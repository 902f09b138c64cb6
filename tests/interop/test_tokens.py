"""Delegation tokens of ours at Hadoop's NameNode, and Hadoop's client at ours with tokens only."""

import time
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from journal.model import NamespaceInfo, TxId
from namenode_sim.edits import ops
from namenode_sim.edits.codec import NEWEST_LAYOUT
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop
from tests.interop.name_dirs import images
from tests.interop.our_viewers import our_oev
from tests.namenode_sim.client_protocol.test_tokens import Scene
from tests.worlds.files import write_log
from tests.worlds.name_dirs import format_name_dirs

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

INFO = NamespaceInfo(NEWEST_LAYOUT, 4711, "CID-ours", 0, "BP-1-127.0.0.1-2")


async def test_hadoop_goes_on_with_the_tokens_of_our_edits(hadoop: Hadoop, tmp_path: Path) -> None:
    scene = Scene(now_ms=int(time.time() * 1000))
    scene.served.log_and_apply(ops.StartLogSegment())
    good, renewed, gone = await scene.get(), await scene.get(real_user="livy"), await scene.get()
    scene.now_ms += 1000
    expiry = await scene.renew(renewed)
    await scene.cancel(gone)
    scene.served.log_and_apply(ops.EndLogSegment())
    name_dir = tmp_path / "name"
    format_name_dirs([name_dir], INFO, Namespace.empty("hdfs"))
    log = [(TxId(number), op) for number, op in enumerate(scene.served.log.ops(), 1)]
    segment = write_log(name_dir / "current", log)

    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"
    our_oev(segment, ours, "xml")
    hadoop.print_edits(segment, theirs)
    assert ours.read_bytes() == theirs.read_bytes()
    with hadoop.name_node(name_dir) as node:
        manager = node.getNamesystem().getDelegationTokenSecretManager()

        def identifier(raw: bytes) -> object:
            stream = hadoop.gateway.jvm.java.io.ByteArrayInputStream(raw)
            found = manager.createIdentifier()
            found.readFields(hadoop.gateway.jvm.java.io.DataInputStream(stream))
            return found

        for token in (good, renewed):
            assert manager.retrievePassword(identifier(token.identifier)) == token.password
        assert manager.getTokenExpiryTime(identifier(renewed.identifier)) == expiry
        user = identifier(renewed.identifier).getUser()  # type: ignore[attr-defined]
        assert (user.getUserName(), user.getRealUser().getUserName()) == ("alice", "livy")
        with pytest.raises(Py4JJavaError, match="can't be found in cache"):
            manager.retrievePassword(identifier(gone.identifier))
    hadoop.save_again(name_dir)
    theirs_now = load_image(images(name_dir)[-1])
    assert theirs_now.secrets.tokens == scene.served.namespace.secrets.tokens
    back = Scene(now_ms=int(time.time() * 1000), namespace=theirs_now)
    for token in (good, await back.get()):  # the second under a key of Hadoop's
        back.log_in(token)
