"""getBatchedListing: pages over the entries of several directories (FSNamesystem)."""

import hashlib

from google.protobuf.message import DecodeError

from ha.rpc.java_names import ILLEGAL_ARGUMENT
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.reads.reads import get_listing
from namenode_sim.client_protocol.words.errors import FsError, not_found
from namenode_sim.client_protocol.words.model import Scene


def get_batched_listing(
    scene: Scene, request: calls.GetBatchedListingRequestProto
) -> calls.GetBatchedListingResponseProto:
    """Return a page, which may end in the midst of a directory; what fails fails for its path.

    ``startAfter`` is our own key, which the client gives back: the path that the last page ended
    in, and the last name on it; no name for a file or what failed, which is done.
    """
    paths, most = request.paths, scene.settings.batched_listing_limit
    if len(paths) > most:
        raise FsError(ILLEGAL_ARGUMENT, f"Too many source paths ({len(paths)} > {most})")
    checksum = hashlib.sha256("\0".join(paths).encode("utf-8", "replace")).digest()
    index, after = _position(request.startAfter, checksum)
    answer = calls.GetBatchedListingResponseProto(hasMore=False, startAfter=b"")
    entries = 0
    for number in range(index, len(paths)):
        listing = answer.listings.add(parentIdx=number)
        found = None
        try:
            asked = calls.GetListingRequestProto(
                src=paths[number], startAfter=after, needLocation=request.needLocation
            )
            found = get_listing(scene, asked)
            if not found.HasField("dirList"):
                raise not_found(f"Path {paths[number]} does not exist")
            listing.partialListing.extend(found.dirList.partialListing)
        except FsError as error:
            listing.exception.className = error.java_class
            listing.exception.message = error.message
            found = None
        after, entries = b"", entries + len(listing.partialListing)
        more = found is not None and found.dirList.remainingEntries > 0
        if more or (entries >= scene.settings.listing_limit and number + 1 < len(paths)):
            last = listing.partialListing[-1].path if more else b""
            key = calls.BatchedListingKeyProto(checksum=checksum, pathIndex=number, startAfter=last)
            answer.hasMore, answer.startAfter = True, key.SerializeToString()
            break
    return answer


def _position(key: bytes, checksum: bytes) -> tuple[int, bytes]:
    """Return the path and the name to go on with.

    Raises:
        FsError: if the key is of other paths, or none of ours.
    """
    if not key:
        return 0, b""
    try:
        found = calls.BatchedListingKeyProto.FromString(key)
    except DecodeError as problem:
        raise FsError(ILLEGAL_ARGUMENT, "startAfter is no key of a listing") from problem
    if found.checksum != checksum:
        raise FsError(ILLEGAL_ARGUMENT, "startAfter is the key of a listing of other paths")
    return found.pathIndex + (not found.startAfter), found.startAfter
