"""Where a JournalNode serves a segment over HTTP."""

from urllib.parse import urlencode

from journal.model import JournalId, NamespaceInfo, TxId


def segment_url(
    host: str,
    port: int,
    *,
    journal_id: JournalId,
    first: TxId,
    namespace: NamespaceInfo | None,
    in_progress: bool,
    damaged_ok: bool = False,
) -> str:
    """Return the URL of the segment that starts at ``first``, with Hadoop's path and names.

    With ``damaged_ok`` a node whose copy is damaged gives what stands before the damage.
    """
    query = {"jid": journal_id, "segmentTxId": str(first)}
    if namespace is not None:
        query["storageInfo"] = namespace.storage_info()
    query["inProgressOk"] = "true" if in_progress else "false"
    if damaged_ok:
        query["damagedOk"] = "true"
    at = f"[{host}]" if ":" in host else host
    return f"http://{at}:{port}/getJournal?{urlencode(query)}"
