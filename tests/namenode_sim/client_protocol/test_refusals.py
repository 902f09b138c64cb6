"""How calls refuse: Java's classes and the first lines that Hadoop's NameNode gives."""

import pytest

from ha.rpc.errors import RemoteFault
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, prepared

CREATE: Fields = {
    "masked": {"perm": 0o644},
    "clientName": "other",
    "createFlag": 1,
    "createParent": True,
    "replication": 3,
    "blockSize": 1 << 27,
}
MKDIRS: Fields = {"masked": {"perm": 0o755}, "createParent": True}
NOT_FOUND = "java.io.FileNotFoundException"
EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
NO_PARENT = "org.apache.hadoop.fs.ParentNotDirectoryException"
INVALID = "org.apache.hadoop.fs.InvalidPathException"
DENIED = "org.apache.hadoop.security.AccessControlException"
IO = "java.io.IOException"
LEASE = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"
CREATED = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"
ILLEGAL = "org.apache.hadoop.HadoopIllegalArgumentException"
LONG = "n" * 256


REFUSED: dict[str, tuple[str, Fields, str, str]] = {
    "mkdir over a file": ("mkdirs", {"src": "/f", **MKDIRS}, EXISTS, "Path is not a directory: /f"),
    "mkdir below a file": (
        "mkdirs",
        {"src": "/f/x/y", **MKDIRS},
        NO_PARENT,
        "/f (is not a directory)",
    ),
    "mkdir without parents": (
        "mkdirs",
        {"src": "/x/y", **MKDIRS, "createParent": False},
        NOT_FOUND,
        "Parent directory doesn't exist: /x",
    ),
    "mkdir of a bad name": (
        "mkdirs",
        {"src": "/a:b", **MKDIRS},
        INVALID,
        "Invalid path name Invalid file name: /a:b",
    ),
    "mkdir going up": (
        "mkdirs",
        {"src": "/d/../x", **MKDIRS},
        INVALID,
        "Invalid path name Invalid file name: /d/../x",
    ),
    "mkdir of the reserved name": (
        "mkdirs",
        {"src": "/.reserved", **MKDIRS},
        ILLEGAL,
        'File name ".reserved" is reserved and cannot be created. If this is during upgrade '
        "change the name of the existing file or directory to another name before upgrading to "
        "the new release.",
    ),
    "mkdir of a long name": (
        "mkdirs",
        {"src": f"/d/{LONG}", **MKDIRS},
        "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
        f"The maximum path component name limit of {LONG} in directory /d is exceeded: "
        "limit=255 length=256",
    ),
    "a path of too many levels": (
        "mkdirs",
        {"src": "/x" * 1001, **MKDIRS},
        IO,
        "mkdirs: Pathname too long.  Limit 8000 characters, 1000 levels.",
    ),
    "create over a directory": (
        "create",
        {"src": "/d", **CREATE},
        EXISTS,
        "/d already exists as a directory",
    ),
    "create over a file": (
        "create",
        {"src": "/f", **CREATE},
        EXISTS,
        "/f for client 127.0.0.1 already exists",
    ),
    "create over a file that another writes": (
        "create",
        {"src": "/open", **CREATE},
        CREATED,
        "Failed to CREATE_FILE /open for other on 127.0.0.1 because this file lease is "
        "currently owned by writer on 10.0.0.9",
    ),
    "create over a file that one writes oneself": (
        "create",
        {"src": "/open", **CREATE, "clientName": "writer"},
        CREATED,
        "Failed to CREATE_FILE /open for writer on 127.0.0.1 because writer is already the "
        "current lease holder.",
    ),
    "create with tiny blocks": (
        "create",
        {"src": "/n", **CREATE, "blockSize": 512},
        IO,
        "Specified block size is less than configured minimum value "
        "(dfs.namenode.fs-limits.min-block-size): 512 < 1048576",
    ),
    "create with too many replicas": (
        "create",
        {"src": "/n", **CREATE, "replication": 513},
        IO,
        "Requested replication factor of 513 exceeds maximum of 512 for /n, clientName=127.0.0.1",
    ),
    "overwrite of nothing": (
        "create",
        {"src": "/n", **CREATE, "createFlag": 2},
        NOT_FOUND,
        "Can't overwrite non-existent /n",
    ),
    "complete by another": (
        "complete",
        {"src": "/open", "clientName": "other"},
        LEASE,
        "Client (=other) is not the lease owner (=writer: /open (inode 0) Holder other does not "
        "have any open files.",
    ),
    "complete of nothing": (
        "complete",
        {"src": "/none", "clientName": "writer"},
        NOT_FOUND,
        "File does not exist: /none (inode 0) [Lease.  Holder: writer, pending creates: 1]",
    ),
    "complete of a directory": (
        "complete",
        {"src": "/d", "clientName": "other"},
        LEASE,
        "INode is not a regular file: /d (inode 0) Holder other does not have any open files.",
    ),
    "fsync of a closed file": (
        "fsync",
        {"src": "/f", "client": "other"},
        LEASE,
        "File is not open for writing: /f (inode 0) Holder other does not have any open files.",
    ),
    "a block, without DataNodes": (
        "addBlock",
        {"src": "/open", "clientName": "writer"},
        IO,
        "File /open could only be written to 0 of the 1 minReplication nodes. There are 0 "
        "datanode(s) running and no node(s) are excluded in this operation.",
    ),
    "delete of a full directory": (
        "delete",
        {"src": "/d", "recursive": False},
        "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
        "`/d is non empty': Directory is not empty",
    ),
    "rename2 of nothing": (
        "rename2",
        {"src": "/none", "dst": "/x", "overwriteDest": False},
        NOT_FOUND,
        "rename source /none is not found.",
    ),
    "rename2 onto itself": (
        "rename2",
        {"src": "/f", "dst": "/f", "overwriteDest": True},
        EXISTS,
        "The source /f and destination /f are the same",
    ),
    "rename2 below itself": (
        "rename2",
        {"src": "/d", "dst": "/d/e/x", "overwriteDest": False},
        IO,
        "Rename destination /d/e/x is a directory or file under source /d",
    ),
    "rename2 of the root": (
        "rename2",
        {"src": "/", "dst": "/x", "overwriteDest": False},
        IO,
        "rename source cannot be the root",
    ),
    "rename2 without overwriting": (
        "rename2",
        {"src": "/f", "dst": "/d/g", "overwriteDest": False},
        EXISTS,
        "rename destination /d/g already exists",
    ),
    "rename2 of a file onto a directory": (
        "rename2",
        {"src": "/f", "dst": "/d/e", "overwriteDest": True},
        IO,
        "Source /f and destination /d/e must both be directories",
    ),
    "rename2 onto a full directory": (
        "rename2",
        {"src": "/d/e", "dst": "/d", "overwriteDest": True},
        IO,
        "rename destination directory is not empty: /d",
    ),
    "rename2 to where there is no directory": (
        "rename2",
        {"src": "/f", "dst": "/x/y", "overwriteDest": False},
        NOT_FOUND,
        "rename destination parent /x/y not found.",
    ),
    "rename2 below a file": (
        "rename2",
        {"src": "/d", "dst": "/f/y", "overwriteDest": False},
        NO_PARENT,
        "/f (is not a directory)",
    ),
    "the mode of nothing": (
        "setPermission",
        {"src": "/none", "permission": {"perm": 0}},
        NOT_FOUND,
        "Directory/File does not exist /none",
    ),
    "the mode of what is below a file": (
        "setPermission",
        {"src": "/f/x", "permission": {"perm": 0}},
        DENIED,
        "/f (is not a directory)",
    ),
    "the times of nothing": (
        "setTimes",
        {"src": "/none", "mtime": 1, "atime": 1},
        NOT_FOUND,
        "File/Directory /none does not exist.",
    ),
    "the blocks of a directory": (
        "getBlockLocations",
        {"src": "/d", "offset": 0, "length": 1},
        NOT_FOUND,
        "Path is not a file: /d",
    ),
    "the size of nothing": (
        "getContentSummary",
        {"path": "/none"},
        NOT_FOUND,
        "File does not exist: /none",
    ),
    "access to nothing": (
        "checkAccess",
        {"path": "/none", "mode": 4},
        NOT_FOUND,
        "Path not found: /none",
    ),
    "an unknown policy": (
        "setStoragePolicy",
        {"src": "/d", "policyName": "FAST"},
        ILLEGAL,
        "Cannot find a block policy with the name FAST",
    ),
    "an image outside of safe mode": (
        "saveNamespace",
        {},
        "java.io.IOException",
        "Safe mode should be turned ON in order to create namespace image.",
    ),
}


@pytest.mark.parametrize(
    ("method", "fields", "java_class", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_refused(method: str, fields: Fields, java_class: str, message: str) -> None:
    served = await prepared()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)
    assert len(served.log.frames) == edits
