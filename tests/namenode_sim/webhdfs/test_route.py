"""WebHDFS over HTTP: the answers that clients see."""

from tests.namenode_sim.client_protocol.namenode_in_memory import serve
from tests.namenode_sim.webhdfs.web_client import web_client


async def test_a_directory_is_made_looked_at_and_listed() -> None:
    async with web_client(serve()) as client:
        made = await client.ask("PUT", "/d/e", "MKDIRS", permission="700")
        assert made.json == {"boolean": True}
        status = (await client.ask("GET", "/d/e", "GETFILESTATUS")).json["FileStatus"]
        assert status["permission"] == "700"
        assert (status["type"], status["owner"], status["pathSuffix"]) == ("DIRECTORY", "hdfs", "")
        listed = (await client.ask("GET", "/d", "LISTSTATUS")).json["FileStatuses"]["FileStatus"]
        assert [one["pathSuffix"] for one in listed] == ["e"]
        missing = await client.ask("GET", "/none", "GETFILESTATUS")
        assert missing.refusal == (404, "FileNotFoundException")
