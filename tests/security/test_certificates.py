"""Attacks with certificates on real JournalNodes that other machines could reach, and their use."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from deploy.local.cluster.ports import HOST, free_ports
from ha.cluster.certificates import held_by_all
from ha.conf.configuration import load_configuration
from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.security.caller import Role
from ha.security.certificate_files import CA, REVOKED, replace
from ha.security.certificates import CertificateRequest, now
from ha.security.names import CertifiedName
from ha.security.tls_files import TlsFiles
from journal.errors import JournalError
from journal.links.grpc_link import GrpcLink
from journal.messages import namespace_message
from journal.model import TxId
from journal.proto import journal_pb2 as pb
from journal.writer.writer import QuorumWriter
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import LOCAL, Authority
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, QUICK, edit
from tests.security.strangers import SECONDS, Daemon, daemon

CHECK = "100ms"
ANYWHERE = "0.0.0.0"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@asynccontextmanager
async def node(
    authority: Authority,
    folder: Path,
    name: str = "jn1",
    *,
    hosts: Sequence[str] = LOCAL,
    **site: str,
) -> AsyncIterator[tuple[Daemon, int, int]]:
    """Run a JournalNode that listens on all interfaces; yield its gRPC and its HTTP port, too."""
    rpc, http, lane = free_ports(3)
    folder.mkdir(parents=True, exist_ok=True)
    tls = authority.issue(Role.JOURNALNODE, name, hosts=hosts)
    keys = {
        "dfs.journalnode.edits.dir": str(folder / "journal"),
        "dfs.journalnode.rpc-address": f"{ANYWHERE}:{rpc}",
        "dfs.journalnode.http-address": f"{ANYWHERE}:{http}",
        "nnha.journalnode.write-lane-address": f"{ANYWHERE}:{lane}",
        "nnha.security.tls.dir": str(tls),
        "nnha.security.tls.check-interval": CHECK,
        **site,
    }
    async with daemon(folder, "journalnode", "journalnode.started", **keys) as process:
        yield process, rpc, http


@contextmanager
def calling(files: TlsFiles | None) -> Iterator[None]:
    if files is None:
        yield
        return
    with acting_as(files):
        yield


def unchecked(folder: Path) -> TlsFiles:
    """Return an attacker's files, which ask for no role and no cluster of the server."""
    files = TlsFiles(folder, 1)
    files.why_no_server = lambda *_: ""  # type: ignore[method-assign]
    return files


async def said(rpc: int, files: TlsFiles | None, method: str = "NewEpoch", host: str = HOST) -> str:
    """Return a node's answer to a call of this caller; empty: it was carried out."""
    with calling(files):
        link = GrpcLink(host, rpc)
        try:
            if method == "NewEpoch":
                asked = pb.NewEpochRequest(
                    journal_id=JOURNAL, namespace_info=namespace_message(NAMESPACE), epoch=7
                )
                await link.call(method, asked, pb.NewEpochReply, SECONDS)
            else:
                state = pb.JournalRequest(journal_id=JOURNAL)
                await link.call(method, state, pb.GetJournalStateReply, SECONDS)
        except JournalError as error:
            return str(error)
        finally:
            await link.close()
    return ""


async def test_a_node_must_prove_the_name_under_which_it_is_configured(
    authority: Authority, tmp_path: Path
) -> None:
    """Over gRPC, too, which gets addresses only: it checks the name all the same."""
    nn1 = TlsFiles(authority.issue(Role.NAMENODE, "nn1"), 1)
    async with node(authority, tmp_path / "jn", hosts=("localhost",)) as (_, rpc, _):
        assert "is not formatted" in await said(rpc, nn1, host="localhost")
        assert "CERTIFICATE_VERIFY_FAILED" in await said(rpc, nn1, host=HOST)


async def test_who_opens_no_connection_at_all(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    stranger = other.issue(Role.NAMENODE, "nn1")
    replace(stranger, {CA: authority.pair.certificate + other.pair.certificate})
    past = now() - timedelta(hours=23)
    ended = authority.issue(Role.NAMENODE, "nn1", days=0.5, at=past, folder="ended")
    async with node(authority, tmp_path / "jn") as (process, rpc, _):
        for files in (None, unchecked(stranger), unchecked(ended)):
            assert "[UNAVAILABLE]" in await said(rpc, files)
        assert not process.audit.exists(), "no handler was reached"


async def test_a_certificate_of_another_cluster(authority: Authority, tmp_path: Path) -> None:
    foreign = unchecked(authority.issue(Role.NAMENODE, "nn1", cluster="c2"))
    async with node(authority, tmp_path / "jn") as (process, rpc, _):
        answer = await said(rpc, foreign)
        assert "this certificate is of cluster c2, not of c1 [PERMISSION_DENIED]" in answer
        (line,) = await process.audited(1)
        assert (line["allowed"], line["action"]) == (False, "NewEpoch")


async def test_no_role_but_a_namenode_that_is_configured_writes(
    authority: Authority, tmp_path: Path
) -> None:
    callers = {
        name: TlsFiles(authority.issue(role, name), 1)
        for role, name in ((Role.NAMENODE, "nn1"), (Role.ZKFC, "z1"), (Role.NAMENODE, "nn9"))
    }
    async with node(authority, tmp_path / "jn") as (_, rpc, _http):
        answer = await said(rpc, callers["z1"])
        assert "NewEpoch is for namenode; the caller is zkfc z1 [PERMISSION_DENIED]" in answer
        answer = await said(rpc, callers["nn9"])
        assert "nn9 is no NameNode that dfs.ha.namenodes names (nn1" in answer
        assert "[PERMISSION_DENIED]" in answer
        assert not list((tmp_path / "jn/journal").glob("*/current/last-promised-epoch"))
        assert "PERMISSION_DENIED" not in await said(rpc, callers["nn1"])


async def test_a_client_refuses_who_is_not_the_journalnode_it_calls(
    authority: Authority, tmp_path: Path
) -> None:
    nn1 = TlsFiles(authority.issue(Role.NAMENODE, "nn1"), 1)
    elsewhere = authority.issue(Role.JOURNALNODE, "jn2", hosts=("jn2.example",))
    async with node(authority, tmp_path / "jn", **{"nnha.security.tls.dir": str(elsewhere)}) as (
        _,
        rpc,
        _http,
    ):
        assert "not valid for '127.0.0.1'" in await said(rpc, nn1, "GetJournalState")
    other_role = authority.issue(Role.ZKFC, "z1")
    async with node(
        authority, tmp_path / "zk", "jn3", **{"nnha.security.tls.dir": str(other_role)}
    ) as (_, rpc, _http):
        assert "its certificate is that of zkfc z1, and a journalnode was called" in await said(
            rpc, nn1, "GetJournalState"
        )


async def test_pages_are_for_roles(authority: Authority, tmp_path: Path) -> None:
    operator = TlsFiles(authority.issue(Role.OPERATOR, "grafana"), 1)
    query = "/getJournal?jid=ns1&segmentTxId=1&storageInfo=x"

    async def status(http: int, page: str) -> int:
        place = HostPort(HOST, http)
        return (await http_get(place, page, most_bytes=1 << 20, deadline_seconds=SECONDS)).status

    async with node(authority, tmp_path / "jn", **{"nnha.security.mode": "strict"}) as (
        _,
        _r,
        http,
    ):
        assert await status(http, "/livez") == 200
        assert await status(http, "/status") == 403, "the kernel's word alone"
        with acting_as(operator):
            assert await status(http, "/status") == 200
            assert await status(http, "/stacks") == 403
            assert await status(http, query) == 403
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://{HOST}:{http}/status", ssl=operator.client(None)) as answer,
            ):
                assert answer.status == 200


async def test_a_page_beside_the_configuration_is_asked_whom_it_trusts(
    authority: Authority, tmp_path: Path
) -> None:
    admin = TlsFiles(authority.issue(Role.ADMIN, "alice"), 1)
    async with node(authority, tmp_path / "jn", **{"nnha.security.mode": "strict"}) as (
        _,
        _r,
        http,
    ):
        conf = load_configuration(tmp_path / "jn" / "conf")
        with acting_as(admin):
            page = HostPort(HOST, http)
            *configured, beside = await held_by_all(conf, SECONDS, [page])
        assert configured
        assert (beside.daemon, beside.error) == (f"page {page}", "")
        assert beside.name == "nnha://c1/journalnode/jn1"
        assert beside.trusts == admin.material.trusted


class Cluster:
    """Three JournalNodes, and the NameNode nn1 that writes to them."""

    def __init__(self, authority: Authority, ports: list[int], pages: list[int]) -> None:
        self.authority = authority
        self.addresses = [(HOST, port) for port in ports]
        self.pages = [HostPort(HOST, port) for port in pages]
        self.folders = [authority.folder / f"journalnode-jn{i}" for i in range(3)]
        self.own = authority.issue(Role.NAMENODE, "nn1")
        self.files = TlsFiles(self.own, 0.1)

    def writer(self) -> QuorumWriter:
        return QuorumWriter(
            self.addresses, journal_id=JOURNAL, nameservice_id="ns1", namespace=NAMESPACE,
            settings=QUICK,
        )  # fmt: skip

    def everywhere(self, files: dict[str, bytes]) -> None:
        for folder in (*self.folders, self.own):
            replace(folder, files)

    def renew(self, signer: Authority, trusted: bytes) -> None:
        names = [(Role.JOURNALNODE, f"jn{i}") for i in range(3)] + [(Role.NAMENODE, "nn1")]
        for folder, (role, name) in zip((*self.folders, self.own), names, strict=True):
            wish = CertificateRequest(CertifiedName("c1", role, name), LOCAL, 7)
            replace(folder, signer.files(wish, now(), trusted))


@asynccontextmanager
async def cluster(
    authority: Authority, folder: Path, **site: str
) -> AsyncIterator[tuple[Cluster, list[Daemon]]]:
    async with AsyncExitStack() as running:
        found = [
            await running.enter_async_context(node(authority, folder / f"n{i}", f"jn{i}", **site))
            for i in range(3)
        ]
        made = Cluster(authority, [rpc for _, rpc, _ in found], [http for _, _, http in found])
        yield made, [process for process, _, _ in found]


async def logged(processes: list[Daemon], event: str, count: int) -> None:
    """Wait until each of these processes has written an event, a pattern, so often."""
    async with asyncio.timeout(SECONDS):
        for process in processes:
            while len(re.findall(f'"{event}"', process.log.read_text())) < count:
                await asyncio.sleep(0.02)


async def test_certificates_and_authority_change_under_a_writer(
    authority: Authority, tmp_path: Path
) -> None:
    """Three steps, edits all the while: no error, no restart, and the old one ends up outside."""
    following = Authority(tmp_path / "following")
    stale = authority.issue(Role.NAMENODE, "nn1", folder="stale")
    both = following.pair.certificate + authority.pair.certificate
    replace(stale, {CA: both})  # so that it is the servers that refuse
    async with cluster(authority, tmp_path) as (made, processes):
        with acting_as(made.files):
            first = made.writer()
            await first.format()
            await first.become_writer()
            kept = GrpcLink(*made.addresses[0])
            asked = pb.JournalRequest(journal_id=JOURNAL)
            txid = 0
            for step in range(3):
                match step:
                    case 0:
                        made.everywhere({CA: both})
                    case 1:
                        made.renew(following, both)
                    case _:
                        made.everywhere({CA: following.pair.certificate})
                txid = await segment(first, txid)
                assert made.files.look()
                txid = await segment(first, txid)
                await logged(processes, "security.certificates_changed", step + 1)
                txid = await segment(first, txid)
                await kept.call("GetJournalState", asked, pb.GetJournalStateReply, SECONDS)
            await kept.close()
            await first.close()
            successor = made.writer()
            assert (await successor.become_writer()).last_txid == txid
            await segment(successor, txid)
            await successor.close()
        assert "[UNAVAILABLE]" in await said(made.addresses[0][1], unchecked(stale))
        for process in processes:
            text = process.log.read_text()
            assert "journal.lane_opened" in text, "edits went over lanes"


async def over_lanes(writer: QuorumWriter, processes: list[Daemon]) -> int:
    """Write segments until each node has a lane; return the last transaction's number.

    On a busy machine two nodes may acknowledge a whole segment before the third has a lane.
    """
    last = 0
    async with asyncio.timeout(SECONDS):
        while not all('"journal.lane_opened"' in each.log.read_text() for each in processes):
            last = await segment(writer, last)
    return last


async def segment(writer: QuorumWriter, last: int) -> int:
    """Write one more segment of edits; return the number of its last one."""
    await writer.start_segment(TxId(last + 1))
    for txid in range(last + 1, last + 21):
        await writer.write(TxId(txid), 1, edit(txid))
    await writer.finalize_segment(TxId(last + 20))
    return last + 20


async def test_a_stolen_namenodes_lanes_end_with_its_revocation(
    authority: Authority, tmp_path: Path
) -> None:
    async with cluster(authority, tmp_path) as (made, processes):
        with acting_as(made.files):
            writer = made.writer()
            await writer.format()
            await writer.become_writer()
            last = await over_lanes(writer, processes)
            for folder in made.folders:
                replace(folder, {REVOKED: b"nnha://c1/namenode/nn1\n"})
            # The writer's end may be closed sooner than ours has read that it is to close.
            await logged(processes, "journal.lane_(closed|lost)", 1)
            with pytest.raises(JournalError):
                await segment(writer, last)
            await writer.close()
        answer = await said(made.addresses[0][1], made.files)
        assert "this certificate, of namenode nn1, was revoked [PERMISSION_DENIED]" in answer


async def test_permissive_takes_writers_with_and_without_certificates(
    authority: Authority, tmp_path: Path
) -> None:
    """Go from an insecure cluster to a strict one: JournalNodes first, then the NameNode."""
    site = {"nnha.security.mode": "permissive"}
    async with cluster(authority, tmp_path, **site) as (made, _):
        bare = made.writer()
        await bare.format()
        await bare.become_writer()
        last = await segment(bare, 0)
        await bare.close()
        with acting_as(made.files, Mode.PERMISSIVE):
            secured = made.writer()
            assert (await secured.become_writer()).last_txid == last
            await segment(secured, last)
            await secured.close()
