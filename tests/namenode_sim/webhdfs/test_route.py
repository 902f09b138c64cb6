"""WebHDFS over HTTP: the answers that clients see, and the requests that are refused."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.rpc.protocol import Call, Method
from hadoop.webhdfs.token_text import decoded
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.edits.admin_codec import TOKEN
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.webhdfs.web_client import WebClient, web_client

Told = Any
"""What is within an answer's only field."""


@pytest.fixture
def served() -> Served:
    return serve()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[WebClient]:
    async with asyncio.timeout(60), web_client(served) as client:
        yield client


async def test_a_directory_is_made_looked_at_and_listed(client: WebClient) -> None:
    made = await client.ask("PUT", "/d/e", "MKDIRS", permission="700")
    assert made.json == {"boolean": True}
    status = (await client.ask("GET", "/d/e", "GETFILESTATUS")).json["FileStatus"]
    assert status["permission"] == "700"
    assert (status["type"], status["owner"], status["pathSuffix"]) == ("DIRECTORY", "hdfs", "")
    listed = (await client.ask("GET", "/d", "LISTSTATUS")).json["FileStatuses"]["FileStatus"]
    assert [one["pathSuffix"] for one in listed] == ["e"]
    missing = await client.ask("GET", "/none", "GETFILESTATUS")
    assert missing.refusal == (404, "FileNotFoundException")


async def test_copies_that_are_not_numbered_are_the_default(
    served: Served, client: WebClient
) -> None:
    await served.touch("/f")
    for given in ({"replication": 2}, {}):
        assert (await client.ask("PUT", "/f", "SETREPLICATION", **given)).json == {"boolean": True}
        status = (await client.ask("GET", "/f", "GETFILESTATUS")).json["FileStatus"]
        assert status["replication"] == given.get("replication", 3)


async def test_what_is_set_is_shown(served: Served, client: WebClient) -> None:
    """One conversation over the operations that change something and show it again."""
    await served.touch("/f")
    changes: tuple[tuple[str, str, str, dict[str, object]], ...] = (
        ("PUT", "/d", "MKDIRS", {}),
        ("PUT", "/f", "SETOWNER", {"owner": "alice", "group": "staff"}),
        ("PUT", "/f", "SETPERMISSION", {"permission": "640"}),
        ("PUT", "/f", "SETTIMES", {"modificationtime": 5, "accesstime": 6}),
        ("PUT", "/f", "SETREPLICATION", {"replication": 2}),
        (
            "PUT",
            "/f",
            "SETXATTR",
            {"xattr_name": "user.a", "xattr_value": "0x01", "flag": "CREATE"},
        ),
        ("PUT", "/f", "MODIFYACLENTRIES", {"aclspec": "user:bob:rwx"}),
        ("PUT", "/d", "SETQUOTA", {"namespacequota": 9, "storagespacequota": -1}),
        ("PUT", "/d", "SETSTORAGEPOLICY", {"storagepolicy": "COLD"}),
        ("PUT", "/d", "ALLOWSNAPSHOT", {}),
        ("PUT", "/d", "CREATESNAPSHOT", {"snapshotname": "s"}),
        ("PUT", "/f", "RENAME", {"destination": "/d/f"}),
        ("PUT", "/d", "CREATESNAPSHOT", {"snapshotname": "t"}),
    )
    for method, path, op, given in changes:
        answer = await client.ask(method, path, op, **given)
        assert answer.status == 200, (op, answer.text)

    async def shown(path: str, op: str, **given: object) -> Told:
        (told,) = (await client.ask("GET", path, op, **given)).json.values()
        return told

    status = await shown("/d/f", "GETFILESTATUS")
    wanted = {
        "owner": "alice", "group": "staff", "permission": "670", "modificationTime": 5,
        "accessTime": 6, "replication": 2, "type": "FILE", "aclBit": True, "length": 0,
    }  # fmt: skip
    assert wanted.items() <= status.items()
    assert await shown("/d/f", "GETXATTRS", encoding="base64") == [
        {"name": "user.a", "value": "0sAQ=="}
    ]
    assert await shown("/d/f", "LISTXATTRS") == '["user.a"]'
    acl = await shown("/d/f", "GETACLSTATUS")
    assert acl["entries"] == ["user:bob:rwx", "group::r--"]
    usage = await shown("/d", "GETQUOTAUSAGE")
    assert (usage["quota"], usage["spaceQuota"], usage["typeQuota"]) == (9, -1, {})
    policy = await shown("/d", "GETSTORAGEPOLICY")
    assert (policy["name"], policy["storageTypes"]) == ("COLD", ["ARCHIVE"])
    diff = await shown("/d", "GETSNAPSHOTDIFF", oldsnapshotname="s", snapshotname="t")
    assert diff["diffList"] == [
        {"sourcePath": "", "type": "MODIFY"}, {"sourcePath": "f", "type": "CREATE"},
    ]  # fmt: skip
    listing = await shown("/d", "GETSNAPSHOTDIFFLISTING", oldsnapshotname="s", snapshotname="t")
    assert [one["sourcePath"] for one in listing["createList"]] == ["f"]
    assert (listing["lastIndex"], listing["modifyList"][0]["dirId"] > 0) == (-1, True)
    taken = await shown("/d", "GETSNAPSHOTLIST")
    assert [one["fullPath"] for one in taken] == ["/d/.snapshot/s", "/d/.snapshot/t"]
    assert await shown("/", "GETHOMEDIRECTORY") == "/user/hdfs"
    assert await shown("/", "GETTRASHROOT", user_name="alice") == "/user/alice/.Trash"
    assert await shown("/", "GETDELEGATIONTOKEN") is None


async def test_a_token_is_given_renewed_and_cancelled() -> None:
    served = serve(settings=Settings(tokens=TokenRules(issued=True)))
    async with asyncio.timeout(60), web_client(served) as client:
        asked = {"renewer": "hdfs", "service": "nn:8020"}
        answer = await client.ask("GET", "/", "GETDELEGATIONTOKEN", **asked)
        text = answer.json["Token"]["urlString"]
        token = decoded(text)
        assert (token.kind, token.service) == ("WEBHDFS delegation", "nn:8020")
        assert "=" not in text
        (held,) = served.namespace.secrets.tokens
        assert TOKEN.write(held) == token.identifier
        renewed = await client.ask("PUT", "/", "RENEWDELEGATIONTOKEN", token=text)
        assert renewed.json == {"long": served.namespace.secrets.tokens[held]}
        ended = await client.ask("PUT", "/", "CANCELDELEGATIONTOKEN", token=text)
        assert ended.status == 200
        again = await client.ask("PUT", "/", "CANCELDELEGATIONTOKEN", token=text)
        assert again.refusal == (403, "InvalidToken")
        mine = await client.ask("GET", "/", "GETDELEGATIONTOKEN", user_name="alice", kind="k")
        assert decoded(mine.json["Token"]["urlString"]).kind == "k"
        assert [(one.owner, one.renewer) for one in served.namespace.secrets.tokens] == [
            ("alice", "alice"),
        ]


async def test_a_name_comes_back_as_it_was_written(client: WebClient) -> None:
    names = [
        "ü",
        "日本",
        "a b",
        "a+b",
        "a%20b",
        "a%2Fb",
        "a;b=c",
        "a?b",
        "a#b",
        "a&b",
        "a\nb",
        "'\"",
    ]
    for name in names:
        assert (await client.ask("PUT", f"/{name}", "MKDIRS")).json == {"boolean": True}
    listed = (await client.ask("GET", "/", "LISTSTATUS")).json["FileStatuses"]["FileStatus"]
    assert {one["pathSuffix"] for one in listed} == set(names)


async def test_a_name_in_no_ascii_is_read_as_java_sends_it(client: WebClient) -> None:
    await client.ask("PUT", "/ü", "MKDIRS")
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    for name in ("/ü".encode(), b"/\xfc"):
        target = b"/webhdfs/v1" + name + b"?op=GETFILESTATUS"
        writer.write(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status = b"400" if name == b"/\xfc" else b"200"
        assert (await reader.readline()).split()[1] == status
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.close()


async def test_a_long_directory_comes_in_one_answer_or_in_batches(
    served: Served, client: WebClient
) -> None:
    for number in range(2500):
        await served.mkdirs(f"/d/{number:04}")
    whole = (await client.ask("GET", "/d", "LISTSTATUS")).json["FileStatuses"]["FileStatus"]
    assert [one["pathSuffix"] for one in whole] == [f"{number:04}" for number in range(2500)]
    found: list[str] = []
    after = None
    while True:
        page = (await client.ask("GET", "/d", "LISTSTATUS_BATCH", startafter=after)).json
        page = page["DirectoryListing"]
        entries = page["partialListing"]["FileStatuses"]["FileStatus"]
        found += [one["pathSuffix"] for one in entries]
        after = found[-1]
        if not page["remainingEntries"]:
            break
    assert found == [one["pathSuffix"] for one in whole]


async def test_a_listing_that_cannot_go_on_does_not_look_whole(served: Served) -> None:
    """The NameNode becomes standby between two pages: half a directory must not pass for one."""
    for number in range(1500):
        await served.mkdirs(f"/d/{number:04}")
    listing = served.face.protocol().methods["getListing"]
    pages = 0

    async def handle(call: Call, request: Message) -> Message:
        nonlocal pages
        pages += 1
        if pages > 1:
            raise RemoteFault(STANDBY_EXCEPTION, "ask the active NameNode")
        return await listing.handle(call, request)

    changed = {"getListing": Method(listing.request, handle)}
    async with web_client(served, changed=changed) as client:
        with pytest.raises(aiohttp.ClientError):
            await client.ask("GET", "/d", "LISTSTATUS")
    assert pages == 2


async def test_nothing_is_answered_before_it_is_durable(served: Served, client: WebClient) -> None:
    served.log.held = asyncio.Event()
    asking = asyncio.create_task(client.ask("PUT", "/d", "MKDIRS"))
    while not served.log.frames:
        await asyncio.sleep(0)
    assert not asking.done()
    served.log.held.set()
    assert (await asking).json == {"boolean": True}


class StandbyGate:
    def is_open(self) -> bool:
        return False

    async def admit(self, method: str, *, writes: bool) -> None:
        raise RemoteFault(STANDBY_EXCEPTION, f"{method}: ask the active NameNode")


@pytest.mark.parametrize(
    ("method", "op"),
    [("GET", "LISTSTATUS"), ("PUT", "MKDIRS"), ("PUT", "CREATE"), ("GET", "OPEN"),
     ("GET", "GETHOMEDIRECTORY"), ("POST", "APPEND")],
)  # fmt: skip
async def test_a_standby_sends_clients_on(served: Served, method: str, op: str) -> None:
    served.face.gate = StandbyGate()
    async with web_client(served) as client:
        assert (await client.ask(method, "/d", op)).refusal == (403, "StandbyException")


#   the path as it is written, the status and the exception
HOSTILE_PATHS = {
    "a dot": ("PUT", "/a/./b", 400, "InvalidPathException"),
    "two dots": ("PUT", "/a/../b", 400, "InvalidPathException"),
    "two dots in percent signs": ("PUT", "/a/%2e%2e/b", 400, "InvalidPathException"),
    "two dots above the root": ("PUT", "/../../fsck", 400, "InvalidPathException"),
    "an empty name": ("PUT", "/a//b", 400, "InvalidPathException"),
    "a zero byte": ("PUT", "/a%00b", 400, "IllegalArgumentException"),
    "no UTF-8": ("PUT", "/%ff%fe", 400, "IllegalArgumentException"),
    "half a surrogate": ("PUT", "/%ed%a0%80", 400, "IllegalArgumentException"),
    "half a percent sign": ("PUT", "/a%2", 400, "IllegalArgumentException"),
    "a long name": ("PUT", "/" + "n" * 300, 403, "PathComponentTooLongException"),
    "too deep": ("PUT", "/a" * 1001, 403, "IOException"),
    "reserved": ("PUT", "/.reserved/x", 400, "HadoopIllegalArgumentException"),
    "a colon": ("PUT", "/a:b", 400, "InvalidPathException"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE_PATHS)
async def test_a_path_that_cannot_be_is_refused_by_type(client: WebClient, case: str) -> None:
    method, path, status, exception = HOSTILE_PATHS[case]
    answer = await client.raw(method, f"/webhdfs/v1{path}?op=MKDIRS&user.name=hdfs")
    assert answer.refusal == (status, exception), answer.text


#   the target, the method, the headers; the status
HOSTILE_REQUESTS = {
    "the prefix in percent signs": ("DELETE", "/%77ebhdfs/v1/d?op=DELETE&recursive=true", {}, 400),
    "a longer word": ("DELETE", "/webhdfs/v10/d?op=DELETE", {}, 404),
    "another version": ("GET", "/webhdfs/v2/d?op=LISTSTATUS", {}, 404),
    "an operation twice": ("DELETE", "/webhdfs/v1/d?op=LISTSTATUS&op=DELETE", {}, 400),
    "a user twice": (
        "DELETE", "/webhdfs/v1/d?op=DELETE&user.name=hdfs&USER.NAME=alice", {}, 400
    ),
    "a user in no form": ("DELETE", "/webhdfs/v1/d?op=DELETE&user.name=hd%0Afs", {}, 400),
    "a path for a user": ("DELETE", "/webhdfs/v1/d?op=DELETE&user.name=../hdfs", {}, 400),
    "for another": ("DELETE", "/webhdfs/v1/d?op=DELETE&user.name=hdfs&doAs=bob", {}, 403),
    "an unknown method": ("PATCH", "/webhdfs/v1/d?op=DELETE", {}, 405),
    "a preflight": ("OPTIONS", "/webhdfs/v1/d?op=DELETE", {"Origin": "http://evil"}, 405),
    "a query in no UTF-8": ("DELETE", "/webhdfs/v1/d?op=DELETE&x=%ff", {}, 400),
    "many parameters": ("DELETE", "/webhdfs/v1/d?op=DELETE" + "&x=" * 300, {}, 400),
    "by a stranger's name": (
        "DELETE", "/webhdfs/v1/d?op=DELETE&user.name=hdfs", {"Host": "evil.example"}, 403
    ),
    "read by a stranger's name": (
        "GET", "/webhdfs/v1/d?op=LISTSTATUS&user.name=hdfs", {"Host": "evil.example:50"}, 403
    ),
    "a page's form": (
        "POST", "/webhdfs/v1/d?op=UNSETSTORAGEPOLICY&user.name=hdfs",
        {"Origin": "http://evil.example"}, 403,
    ),
    "a page of no address": (
        "POST", "/webhdfs/v1/d?op=UNSETSTORAGEPOLICY&user.name=hdfs", {"Origin": "http://["}, 403
    ),
    "a sandboxed page's form": (
        "POST", "/webhdfs/v1/d?op=UNSETSTORAGEPOLICY&user.name=hdfs", {"Origin": "null"}, 403
    ),
    "a page on another port": (
        "POST", "/webhdfs/v1/d?op=UNSETSTORAGEPOLICY&user.name=hdfs",
        {"Origin": "http://127.0.0.1:1"}, 403,
    ),
    "fetched across sites": (
        "PUT", "/webhdfs/v1/d?op=SETPERMISSION&user.name=hdfs",
        {"Sec-Fetch-Site": "cross-site"}, 403,
    ),
    "fetched across ports": (
        "PUT", "/webhdfs/v1/d?op=SETPERMISSION&user.name=hdfs",
        {"Sec-Fetch-Site": "same-site"}, 403,
    ),
    "an old browser": (
        "PUT", "/webhdfs/v1/d?op=SETPERMISSION&user.name=hdfs", {"User-Agent": "Mozilla/5.0"}, 403
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE_REQUESTS)
async def test_a_hostile_request_is_refused_and_changes_nothing(
    served: Served, client: WebClient, case: str
) -> None:
    await served.mkdirs("/d/e")
    before = len(served.log.frames)
    method, target, headers, status = HOSTILE_REQUESTS[case]
    answer = await client.raw(method, target, **headers)
    assert answer.status == status, answer.text
    if status not in {404, 405}:
        assert answer.json["RemoteException"]["javaClassName"]
    assert len(served.log.frames) == before


async def test_a_browser_may_change_something_from_our_own_page(
    served: Served, client: WebClient
) -> None:
    headers = {
        "Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin",
        "User-Agent": "Mozilla/5.0", "X-XSRF-HEADER": '""',
    }  # fmt: skip
    answer = await client.raw("PUT", "/webhdfs/v1/d?op=MKDIRS&user.name=hdfs", **headers)
    assert answer.json == {"boolean": True}


async def test_data_are_at_the_datanode_that_has_them(served: Served, client: WebClient) -> None:
    datanodes_in_memory.with_datanodes(served)
    await datanodes_in_memory.written(served, "/a b", 10)
    await served.touch("/empty")
    location = (await client.ask("GET", "/a b", "OPEN", offset=3, length=4)).headers["Location"]
    assert location.endswith(
        "/webhdfs/v1/a%20b?op=OPEN&user.name=hdfs&namenoderpcaddress=ns1&length=4&offset=3"
    )
    for op in ("OPEN", "GETFILECHECKSUM"):
        for path in ("/empty", "/a b"):
            assert (await client.ask("GET", path, op)).status == 307, op
    assert (await client.ask("POST", "/a b", "APPEND")).status == 307
    shown = await client.ask("GET", "/a b", "OPEN", noredirect="true")
    assert (shown.status, shown.json["Location"].split("/")[3:5]) == (200, ["webhdfs", "v1"])
    beyond = await client.ask("GET", "/a b", "OPEN", offset=10)
    assert beyond.refusal == (403, "IOException")
    assert (await client.ask("GET", "/", "OPEN")).refusal == (404, "FileNotFoundException")
    assert (await client.ask("GET", "/no", "OPEN")).refusal == (404, "FileNotFoundException")
    denied = await client.ask("GET", "/a b", "OPEN", user_name="carol")
    assert denied.status == 307
    await served.call("setPermission", src="/a b", permission={"perm": 0o600})
    denied = await client.ask("GET", "/a b", "OPEN", user_name="carol")
    assert denied.refusal == (403, "AccessControlException")


async def test_a_new_file_goes_where_placement_puts_it(served: Served, client: WebClient) -> None:
    datanodes_in_memory.with_datanodes(served)
    names = {node.id.host for node in served.cluster.nodes.values()}
    created = await client.ask("PUT", "/n", "CREATE", permission="640", overwrite="true")
    location = created.headers["Location"]
    assert created.status == 307
    assert location.split("/")[2].rpartition(":")[0] in names
    assert "op=CREATE" in location
    assert "&overwrite=true&permission=640" in location
    assert await served.status("/n") is None
    one = sorted(names)[0]
    others = ",".join(sorted(names - {one}))
    for _ in range(5):
        only = await client.ask("PUT", "/n", "CREATE", excludedatanodes=others)
        assert only.headers["Location"].split("/")[2].rpartition(":")[0] == one
    nowhere = await client.ask("PUT", "/n", "CREATE", excludedatanodes=",".join(sorted(names)))
    assert nowhere.refusal == (403, "IOException")
    assert (await client.ask("PUT", "/a//b", "CREATE")).refusal == (400, "InvalidPathException")
