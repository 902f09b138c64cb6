"""A refusal says why: to a browser on a page for people, to a program in a line."""

import asyncio
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from aiohttp import web

from ha.conf.keys.security import Mode
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.front_page import refused_page
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from tests.ha.rpc.test_tls import Unwritten
from tests.ha.security.authority import Authority

BROWSER: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
CURL: Final = "*/*"
FACES: Final = {
    "page": ("/status", "status is for"),
    "route": ("/imagetransfer", "imagetransfer is for"),
}
WHY: Final = {
    "one whom the kernel knows": (0, 403, "In strict mode it needs a certificate"),
    "one of another machine": (None, 401, "nothing proves who calls from 127.0.0.1"),
}


async def _route(_: web.Request) -> web.Response:
    return web.Response(text="an image")


@pytest.mark.parametrize("accept", [BROWSER, CURL, ""], ids=["browser", "curl", "none"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("who", WHY)
@pytest.mark.parametrize("face", FACES)
async def test_the_refused_learn_why(
    face: str, who: str, scheme: str, accept: str, tmp_path: Path
) -> None:
    path, refused = FACES[face]
    uid, status, why = WHY[who]
    files = Authority(tmp_path).holder(Role.NAMENODE, "nn1")
    access = AccessControl(
        Mode.STRICT, target="nn1", audit=Unwritten(), own_uid=1, tls=files, uid_of=lambda *_: uid
    )
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, access=access, routes=lambda: [web.get(path, _route)]
    )
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    headers = {"Accept": accept} if accept else {}
    async with asyncio.timeout(30):
        port = await endpoint.start("127.0.0.1", 0)
        try:
            async with (
                aiohttp.ClientSession(skip_auto_headers=["Accept"]) as session,
                session.get(
                    f"{scheme}://127.0.0.1:{port}{path}", headers=headers, ssl=unchecked
                ) as answer,
            ):
                text = await answer.text()
        finally:
            await endpoint.stop()
    assert answer.status == status
    assert refused in text
    assert why in text
    for_people = "text/html" in accept
    assert answer.content_type == ("text/html" if for_people else "text/plain")
    assert ("<!DOCTYPE html>" in text) is for_people
    assert ("nnha security pkcs12" in text) is for_people
    assert ("Content-Security-Policy" in answer.headers) is for_people
    assert for_people or text.count("\n") == 1


def test_what_to_do_depends_on_certificates_and_a_hostile_reason_is_text() -> None:
    with_some = refused_page(HTTPStatus.UNAUTHORIZED, "<script>", certificates=True).body.decode()
    without = refused_page(HTTPStatus.UNAUTHORIZED, "<script>", certificates=False).body.decode()
    assert "pkcs12" in with_some
    assert "ssh -L" in without
    assert "pkcs12" not in without
    assert "<script>" not in with_some + without
