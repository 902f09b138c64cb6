"""The table of operations: each row, with the call that it makes and the values that it refuses."""

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.security.rights import CLIENT_PROTOCOL, RIGHTS
from hadoop.webhdfs import params, refusals
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.webhdfs.answers import Asked
from namenode_sim.webhdfs.operations import OPERATIONS, NotServed, Operation, Row, asked_for
from tests.namenode_sim.client_protocol.namenode_in_memory import serve

HADOOPS = {
    "GET": """OPEN GETFILESTATUS LISTSTATUS GETCONTENTSUMMARY GETQUOTAUSAGE GETFILECHECKSUM
        GETHOMEDIRECTORY GETDELEGATIONTOKEN GET_BLOCK_LOCATIONS GETFILEBLOCKLOCATIONS GETACLSTATUS
        GETXATTRS GETTRASHROOT LISTXATTRS GETALLSTORAGEPOLICY GETSTORAGEPOLICY GETECPOLICY
        CHECKACCESS LISTSTATUS_BATCH GETSERVERDEFAULTS GETSNAPSHOTDIFF GETSNAPSHOTDIFFLISTING
        GETSNAPSHOTTABLEDIRECTORYLIST GETLINKTARGET GETFILELINKSTATUS GETSTATUS GETECPOLICIES
        GETECCODECS GETTRASHROOTS GETSNAPSHOTLIST""",
    "PUT": """CREATE MKDIRS CREATESYMLINK RENAME SETREPLICATION SETOWNER SETPERMISSION SETTIMES
        RENEWDELEGATIONTOKEN CANCELDELEGATIONTOKEN MODIFYACLENTRIES REMOVEACLENTRIES
        REMOVEDEFAULTACL REMOVEACL SATISFYSTORAGEPOLICY SETACL SETXATTR REMOVEXATTR ENABLEECPOLICY
        DISABLEECPOLICY SETECPOLICY ALLOWSNAPSHOT DISALLOWSNAPSHOT CREATESNAPSHOT RENAMESNAPSHOT
        SETSTORAGEPOLICY SETQUOTA SETQUOTABYSTORAGETYPE""",
    "POST": "APPEND CONCAT TRUNCATE UNSETECPOLICY UNSETSTORAGEPOLICY",
    "DELETE": "DELETE DELETESNAPSHOT",
}
"""Hadoop 3.5.0's Get-, Put-, Post- and DeleteOpParam.Op but NULL."""
ROWS = [(method, op) for method, rows in OPERATIONS.items() for op in rows]
GIVEN = {
    "destination": "/dst", "aclspec": "user:bob:rw-", "xattr.name": "user.a", "flag": "CREATE",
    "snapshotname": "s", "oldsnapshotname": "o", "storagetype": "ssd", "storagepolicy": "HOT",
    "sources": "/a,b", "newlength": "3", "fsaction": "r-x", "encoding": "hex", "owner": "bob",
    "replication": "2", "storagespacequota": "-1",
    "token": "AAAAAA",
}  # fmt: skip


def asked(method: str, op: str, **given: str) -> tuple[Row, Asked]:
    query = {"op": [op], **{name: [value] for name, value in given.items()}}
    return asked_for(method, query, "/p", "alice", "writer")


def requested(method: str, query: params.Query) -> Message:
    row, found = asked_for(method, query, "/p", "alice", "writer")
    assert isinstance(row, Operation)
    return row.request(found)


@pytest.mark.parametrize("text", ["A", "AAA", "Aw", "!!!!", "gICAgICA", "ü", "AP__", "A" * 20000])
def test_a_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(RemoteFault, match="it is no token"):
        asked("PUT", "CANCELDELEGATIONTOKEN", token=text)


def test_the_table_has_all_of_hadoops_operations() -> None:
    assert {method: set(rows) for method, rows in OPERATIONS.items()} == {
        method: set(text.split()) for method, text in HADOOPS.items()
    }


@pytest.mark.parametrize(("method", "op"), ROWS)
def test_each_row_makes_a_call_that_is_served_by_rpc_and_in_no_audit(method: str, op: str) -> None:
    given = {**GIVEN, **({"aclspec": "user:bob:"} if op == "REMOVEACLENTRIES" else {})}
    row, found = asked(method, op, **given)
    assert row.call in serve().face.protocol().methods
    assert not RIGHTS[CLIENT_PROTOCOL][row.call].audited
    if isinstance(row, Operation):
        request = row.request(found)
        assert type(request) is table.request_of(row.call)
        assert request.IsInitialized()
    names = {name.rstrip("!") for name in row.params.split()}
    assert names <= set(params.PARAMS)


@pytest.mark.parametrize(("method", "op"), ROWS)
def test_a_row_is_refused_without_what_it_must_have(method: str, op: str) -> None:
    row = OPERATIONS[method][op]
    for name in (name for name in row.params.split() if name.endswith("!")):
        given = {other: value for other, value in GIVEN.items() if other != name[:-1]}
        with pytest.raises(Exception, match=f"Required param {name[:-1]} for op: {op}"):
            asked(method, op, **given)


REQUESTS = {
    "rename": ("PUT", "RENAME", {"destination": "/d"}, 'src: "/p"\ndst: "/d"\n'),
    "rename over another": (
        "PUT", "RENAME", {"destination": "/d", "renameoptions": "overwrite"},
        'src: "/p"\ndst: "/d"\noverwriteDest: true\nmoveToTrash: false\n',
    ),
    "no quota of names": (
        "PUT", "SETQUOTA", {"namespacequota": "-1", "storagespacequota": "5"},
        f'path: "/p"\nnamespaceQuota: {2**64 - 1}\nstoragespaceQuota: 5\n',
    ),
    "quota of one type": (
        "PUT", "SETQUOTABYSTORAGETYPE", {"storagetype": "ssd", "storagespacequota": "5"},
        f'path: "/p"\nnamespaceQuota: {2**63 - 1}\nstoragespaceQuota: 5\nstorageType: SSD\n',
    ),
    "times": (
        "PUT", "SETTIMES", {"accesstime": "7"}, f'src: "/p"\nmtime: {2**64 - 1}\natime: 7\n'
    ),
    "a value in base 64": (
        "PUT", "SETXATTR", {"xattr.name": "User.a.b", "xattr.value": "0sAAE=", "flag": "replace"},
        'src: "/p"\nxAttr {\n  namespace: USER\n  name: "a.b"\n  value: "\\000\\001"\n}\nflag: 2\n',
    ),
    "a value in quotes": (
        "PUT", "SETXATTR", {"xattr.name": "user.a", "xattr.value": '"v"', "flag": "CREATE,REPLACE"},
        'src: "/p"\nxAttr {\n  namespace: USER\n  name: "a"\n  value: "v"\n}\nflag: 3\n',
    ),
    "sources": (
        "POST", "CONCAT", {"sources": "/a,b"}, 'trg: "/p"\nsrcs: "/a"\nsrcs: "/b"\n'
    ),
    "a default entry": (
        "PUT", "SETACL", {"aclspec": "default:group::r-x,other::--x"},
        'src: "/p"\naclSpec {\n  type: GROUP\n  scope: DEFAULT\n  permissions: READ_EXECUTE\n}\n'
        "aclSpec {\n  type: OTHER\n  scope: ACCESS\n  permissions: EXECUTE\n}\n",
    ),
    "no length": (
        "GET", "GET_BLOCK_LOCATIONS", {"offset": "4"},
        f'src: "/p"\noffset: 4\nlength: {2**63 - 1}\n',
    ),
    "a mode with its mask": (
        "PUT", "MKDIRS", {"permission": "750", "unmaskedpermission": "1777"},
        'src: "/p"\nmasked {\n  perm: 488\n}\ncreateParent: true\nunmasked {\n  perm: 1023\n}\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REQUESTS)
def test_requests_say_what_was_asked(case: str) -> None:
    method, op, given, text = REQUESTS[case]
    row, found = asked(method, op, **given)
    assert isinstance(row, Operation)
    assert str(row.request(found)) == text


REFUSED = {
    "no operation": ("GET", {}, 400),
    "an unknown one": ("GET", {"op": "FORMAT"}, 400),
    "one of another method": ("GET", {"op": "DELETE"}, 400),
    "an offset below 0": ("GET", {"op": "OPEN", "offset": "-1"}, 400),
    "an offset in words": ("GET", {"op": "OPEN", "offset": "1e3"}, 400),
    "an offset of 65 bits": ("GET", {"op": "OPEN", "offset": str(2**63)}, 400),
    "an empty offset": ("GET", {"op": "OPEN", "offset": ""}, 400),
    "a permission beyond 1777": ("PUT", {"op": "SETPERMISSION", "permission": "2777"}, 400),
    "a permission that is not octal": ("PUT", {"op": "SETPERMISSION", "permission": "788"}, 400),
    "no copies": ("PUT", {"op": "SETREPLICATION", "replication": "0"}, 400),
    "too many copies": ("PUT", {"op": "SETREPLICATION", "replication": "32768"}, 400),
    "a boolean of another kind": ("DELETE", {"op": "DELETE", "recursive": "yes"}, 400),
    "a relative destination": ("PUT", {"op": "RENAME", "destination": "d"}, 400),
    "an unknown option": (
        "PUT", {"op": "RENAME", "destination": "/d", "renameoptions": "FORCE"}, 400
    ),
    "an ACL in no form": ("PUT", {"op": "SETACL", "aclspec": "user:bob:rwz"}, 400),
    "an ACL without rights": ("PUT", {"op": "SETACL", "aclspec": "user:bob:"}, 400),
    "an ACL with rights to remove": (
        "PUT", {"op": "REMOVEACLENTRIES", "aclspec": "user:bob:rwx"}, 400
    ),
    "an attribute without a space": (
        "PUT", {"op": "SETXATTR", "xattr.name": "a", "flag": "CREATE"}, 400
    ),
    "an attribute of no name": (
        "PUT", {"op": "SETXATTR", "xattr.name": "user.", "flag": "CREATE"}, 400
    ),
    "a value in no hexadecimal": (
        "PUT",
        {"op": "SETXATTR", "xattr.name": "user.a", "flag": "CREATE", "xattr.value": "0xg"}, 400,
    ),
    "an unknown encoding": ("GET", {"op": "GETXATTRS", "encoding": "ROT13"}, 400),
    "an action in words": ("GET", {"op": "CHECKACCESS", "fsaction": "read"}, 400),
    "an unknown storage": (
        "PUT", {"op": "SETQUOTABYSTORAGETYPE", "storagetype": "TAPE", "storagespacequota": "1"},
        400,
    ),
    "neither owner nor group": ("PUT", {"op": "SETOWNER"}, 400),
    "a file that becomes longer than any": (
        "POST", {"op": "TRUNCATE", "newlength": str(2**63)}, 400
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_cannot_be_are_refused_by_type(case: str) -> None:
    method, given, status = REFUSED[case]
    query = {name: [value] for name, value in given.items()}
    with pytest.raises((FsError, RemoteFault)) as caught:
        requested(method, query)
    error = caught.value
    assert isinstance(error, FsError | RemoteFault)
    assert refusals.status_of(error.java_class) == status


def test_a_parameter_of_two_values_is_refused_but_for_names_of_attributes() -> None:
    twice = {"op": ["GETXATTRS"], "encoding": ["hex", "hex"], "xattr.name": ["user.a", "user.b"]}
    row, found = asked_for("GET", twice, "/p", "alice", "")
    assert isinstance(row, Operation)
    assert str(row.request(found)).count("xAttrs {") == 2
    for name in ("op", "encoding"):
        with pytest.raises(Exception, match="it has 2 values"):
            asked_for("GET", {**twice, name: ["hex", "text"]}, "/p", "alice", "")
    setting = {"op": ["SETXATTR"], "flag": ["CREATE"], "xattr.name": ["user.a", "user.b"]}
    row, found = asked_for("PUT", setting, "/p", "alice", "")
    assert isinstance(row, Operation)
    with pytest.raises(Exception, match="it has 2 values"):
        row.request(found)


def test_what_is_not_served_says_why() -> None:
    rows = [row for found in OPERATIONS.values() for row in found.values()]
    assert all(row.why for row in rows if isinstance(row, NotServed))


def test_an_attribute_of_no_name_is_refused_in_hadoops_words() -> None:
    row, found = asked("PUT", "SETXATTR", flag="CREATE", **{"xattr.name": "user."})
    assert isinstance(row, Operation)
    with pytest.raises(FsError, match="XAttr name cannot be empty"):
        row.request(found)
