"""How a client call is refused: a Java exception by name, with the text that the NameNode gives.

The shells and file systems built on HDFS distinguish these by class, and print the first line.
"""

from ha.rpc import java_names

DIRECTORY_ITEMS_EXCEEDED = (
    "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException"
)
NAME_TOO_LONG = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"
INVALID_REQUEST = "org.apache.hadoop.fs.InvalidRequestException"
HADOOP_ILLEGAL_ARGUMENT = "org.apache.hadoop.HadoopIllegalArgumentException"
RECOVERY_IN_PROGRESS = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException"
SNAPSHOT = "org.apache.hadoop.hdfs.protocol.SnapshotException"
SNAPSHOT_ACCESS_CONTROL = "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException"
START_AFTER_NOT_FOUND = "org.apache.hadoop.fs.DirectoryListingStartAfterNotFoundException"
UNRESOLVED_PATH = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException"
UNSUPPORTED_ACTION = "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException"
XATTR_NOT_FOUND = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException"


class FsError(Exception):
    """A call that the file system refuses; nothing has changed.

    Attributes:
        java_class: the exception's name as Java knows it.
        message: the first line the caller sees.
    """

    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(java_class, message)
        self.java_class = java_class
        self.message = message


def io_error(message: str) -> FsError:
    """Return an IOException of no particular class."""
    return FsError(java_names.IO_EXCEPTION, message)


def illegal_argument(message: str) -> FsError:
    """Return Hadoop's own IllegalArgumentException."""
    return FsError(HADOOP_ILLEGAL_ARGUMENT, message)


def invalid_request(message: str) -> FsError:
    return FsError(INVALID_REQUEST, message)


def snapshot_error(message: str) -> FsError:
    return FsError(SNAPSHOT, message)


def not_found(message: str) -> FsError:
    return FsError(java_names.FILE_NOT_FOUND, message)


def already_exists(message: str) -> FsError:
    return FsError(java_names.FILE_ALREADY_EXISTS, message)


def denied(message: str) -> FsError:
    return FsError(java_names.ACCESS_CONTROL, message)


def invalid_path(said: str) -> FsError:
    """Return an InvalidPathException, which takes any text for a path."""
    return FsError(java_names.INVALID_PATH, f"Invalid path name {said}")


def lease_expired(message: str) -> FsError:
    return FsError(java_names.LEASE_EXPIRED, message)
