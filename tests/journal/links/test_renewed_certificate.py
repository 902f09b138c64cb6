"""A writer whose certificate is renewed while its stream is open."""

from pathlib import Path

from cryptography import x509

from ha.conf.keys.security import Mode
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from ha.security.certificate_files import CERT
from ha.security.tls_files import TlsFiles
from journal.links.grpc_link import GrpcLink
from journal.node.process.daemon import JournalNodeDaemon
from journal.proto import journal_pb2 as pb
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority, revoke
from tests.ha.security.test_unproven import Lines
from tests.journal.links.test_cut_short import ASKED, HOST, formatted, settings_of


async def test_calls_go_on_under_the_new_one_where_the_old_one_counts_no_more(
    tmp_path: Path,
) -> None:
    """Bad schedule: the old authority ends, and a hand-over finalizes the segment before it rolls.

    The NameNode ended itself, as its JournalNodes refused the connection of the stream.
    """
    await formatted(tmp_path)
    authority = Authority(tmp_path / "certificates")
    files = authority.holder(Role.JOURNALNODE, "jn1")
    old, new = (authority.issue(Role.NAMENODE, "nn1", folder=name) for name in ("old", "new"))
    access = AccessControl(Mode.AUTO, target="t", audit=Lines(), tls=files)
    async with JournalNodeDaemon(settings_of(tmp_path), access) as node:
        with acting_as(TlsFiles(old, 60)):
            link = GrpcLink(HOST, node.rpc_port)
            await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)
            link.open_write_stream()
        shown = x509.load_pem_x509_certificate((old / CERT).read_bytes())
        revoke(tmp_path / "certificates" / "journalnode-jn1", f"{shown.serial_number:x}")
        files.look()
        with acting_as(TlsFiles(new, 60)):
            await link.call("GetJournalState", ASKED, pb.GetJournalStateReply, 20)
        await link.close()
    files.stop()
