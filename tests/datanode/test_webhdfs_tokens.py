"""WebHDFS on a DataNode by delegation tokens, which it hands to a NameNode to judge."""

from base64 import b64encode
from pathlib import Path
from typing import Any

from ha.conf.keys.security import Mode
from ha.record import replace
from ha.security.access_control import AccessControl
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs import token_text
from tests.datanode.test_webhdfs import web
from tests.files.world import put
from tests.ha.security.test_unproven import Lines

NOBODYS = TokenProto(identifier=b"\0", password=b"", kind="", service="")
ALICES = TokenProto(identifier=b"\0\5alice\4yarn\0", password=b"secret", kind="", service="")


async def test_a_token_is_for_the_namenode_to_judge(tmp_path: Path) -> None:
    access = AccessControl(Mode.AUTO, target="t", audit=Lines(), own_uid=1, uid_of=lambda *_: None)
    text = token_text.encoded(ALICES)
    unnamed: dict[str, Any] = {"user.name": None, "delegation": text}
    async with web(tmp_path, access) as site:
        await put(site.made.client, "/f", b"abc")
        assert (await site.ask("GET", "/f", "OPEN", **unnamed)).status == 403, "no tokens here"
        site.routes.takes_tokens = True
        assert (await site.ask("GET", "/f", "OPEN", **unnamed)).body == b"abc"
        assert site.asked_for == [f"alice by {b64encode(b'secret')!r}"]
        access.policy = replace(access.policy, mode=Mode.STRICT, certificates=True)
        assert (await site.ask("GET", "/f", "OPEN", **unnamed)).body == b"abc"
        access.policy = replace(access.policy, mode=Mode.AUTO)
        assert (await site.ask("GET", "/f", "OPEN")).status == 403, "without one it needs a proof"
        other = await site.ask("GET", "/f", "OPEN", delegation=text)
        assert other.refusal[2] == "Usernames not matched: name=hdfs != expected=alice"
        for bad in (
            "x y",
            token_text.encoded(TokenProto(identifier=b"\0", password=b"", kind="", service="")),
        ):
            refused = await site.ask("GET", "/f", "OPEN", **{**unnamed, "delegation": bad})
            assert refused.refusal[:2] == (400, "IllegalArgumentException")
        assert len(site.asked_for) == 2
