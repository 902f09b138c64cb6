"""What edit-log ops are made of: permissions, blocks, ACL entries, tokens and the like.

The bytes: docs/reference/formats.md#primitive-types.  The classes are frozen for the type checker
only: checking at run time would double the cost of decoding an op (see ``value``).
"""

from enum import IntEnum
from typing import Final

from ha.record import record


class AclScope(IntEnum):
    """Whether an ACL entry rules the inode itself or what is created in it."""

    ACCESS = 0
    DEFAULT = 1


class AclType(IntEnum):
    """Whom an ACL entry is about."""

    USER = 0
    GROUP = 1
    MASK = 2
    OTHER = 3


class XAttrNamespace(IntEnum):
    """The namespace of an extended attribute, which decides which users see it."""

    USER = 0
    TRUSTED = 1
    SECURITY = 2
    SYSTEM = 3
    RAW = 4


class StorageType(IntEnum):
    """Storage types by the edit log's ordinals.  The image has others."""

    RAM_DISK = 0
    SSD = 1
    DISK = 2
    ARCHIVE = 3
    PROVIDED = 4
    NVDIMM = 5


class RenameOption(IntEnum):
    """How a rename treats what stands at its destination."""

    NONE = 0
    OVERWRITE = 1
    TO_TRASH = 2


@record
class RpcIds:
    """The client call behind an op: ``client_id`` is its 16-byte UUID, or empty."""

    client_id: bytes
    call_id: int


NO_RPC_IDS: Final = RpcIds(b"", -2)
"""What Hadoop writes when no client call caused the op."""


@record
class Permission:
    """Hadoop's PermissionStatus; ``mode`` is sticky<<9 | user<<6 | group<<3 | other."""

    user: str
    group: str
    mode: int


@record
class Block:
    """A block of a file.  A negative id is a striped block group."""

    block_id: int
    num_bytes: int
    generation_stamp: int


@record
class AclEntry:
    """One line of an ACL; ``permission`` is r=4, w=2, x=1; ``name`` is None where none is due."""

    scope: AclScope
    type: AclType
    name: str | None
    permission: int


@record
class XAttr:
    """An extended attribute; the name has no ``user.`` prefix, an absent value is None."""

    namespace: XAttrNamespace
    name: str
    value: bytes | None


@record
class DelegationTokenIdentifier:
    """What a delegation token says of itself; dates are Unix milliseconds."""

    owner: str
    renewer: str
    real_user: str
    issue_date: int
    max_date: int
    sequence_number: int
    master_key_id: int


@record
class DelegationKey:
    """A key that signs delegation tokens; ``key`` None is Java's null."""

    key_id: int
    expiry_date: int
    key: bytes | None


@record
class CacheDirective:
    """A path to cache.  None means "not given"; ``expiration`` is absolute Unix milliseconds."""

    id: int
    path: str | None = None
    replication: int | None = None
    pool: str | None = None
    expiration: int | None = None


@record
class CachePool:
    """A pool of cache directives.  None means "not given"; ``max_relative_expiry`` is in ms."""

    name: str
    owner: str | None = None
    group: str | None = None
    mode: int | None = None
    limit: int | None = None
    max_relative_expiry: int | None = None
    default_replication: int | None = None


@record
class EcPolicy:
    """An erasure coding policy as a user defines it; ``cell_size`` is in bytes."""

    codec: str
    data_units: int
    parity_units: int
    cell_size: int
    options: tuple[tuple[str, str], ...] = ()
