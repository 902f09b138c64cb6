"""Which deletions the protected directories forbid."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

PROTECTED = frozenset({"/p", "/q/in", "/r/empty", "/r/not/there"})
DENIED = "org.apache.hadoop.security.AccessControlException"


async def with_protected(*, below: bool = False) -> Served:
    """Make files in and next to the protected directories; ``below``: all below is protected."""
    served = serve(settings=Settings(protected=PROTECTED, protected_below=below))
    for file in ("/p/f", "/p/sub/deep/f", "/p2/f", "/q/in/f", "/q/in2/f", "/r/f"):
        await served.touch(file)
    for directory in ("/p/empty", "/r/empty"):
        await served.mkdirs(directory)
    return served


# Whether what is below is protected as well, what is deleted, and what forbids it.
FORBIDDEN: dict[str, tuple[bool, str, str]] = {
    "itself, otherwise written": (False, "//p/", "non-empty protected directory /p"),
    "one that holds one": (False, "/q", "non-empty protected subdirectory /q/in"),
    "below one": (True, "/p/sub", "subdirectory under protected subdirectory /p"),
    "far below one": (True, "/p/sub/deep", "subdirectory under protected subdirectory /p"),
}


@pytest.mark.parametrize(("below", "path", "why"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
async def test_a_deletion_that_protected_directories_forbid(
    below: bool, path: str, why: str
) -> None:
    served = await with_protected(below=below)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("delete", src=path, recursive=True)
    assert (refusal.value.java_class, refusal.value.message) == (
        DENIED,
        f"Cannot delete/rename {why}",
    )


ALLOWED: dict[str, tuple[bool, str]] = {
    "below one": (False, "/p/sub"),
    "a file below one": (True, "/p/f"),
    "an empty directory below one": (True, "/p/empty"),
    "an empty one": (True, "/r/empty"),
    "one that holds an empty one": (False, "/r"),
    "one whose name begins alike": (True, "/p2"),
    "one whose name begins alike, below another": (True, "/q/in2"),
}


@pytest.mark.parametrize(("below", "path"), ALLOWED.values(), ids=ALLOWED.keys())
async def test_a_deletion_that_protected_directories_allow(below: bool, path: str) -> None:
    served = await with_protected(below=below)
    answer = await served.call("delete", src=path, recursive=True)
    assert answer == calls.DeleteResponseProto(result=True)


async def test_the_root_is_not_deleted_whatever_is_protected() -> None:
    served = await with_protected(below=True)
    answer = await served.call("delete", src="/", recursive=True)
    assert answer == calls.DeleteResponseProto(result=False)
