"""A look at each message read: text must be UTF-8, and fields we do not know are kept.

Fields of a newer Hadoop are written back as they came.  Only messages that hold some are kept,
whole.  On saving, what we know of a message is written from the namespace and the rest is put in
from the kept one, part by part.
"""

from google.protobuf.message import Message

from namenode_sim.image.errors import ImageError

Kept = dict[tuple[str, int | str], bytes]
"""Messages with unknown fields, by section and by what identifies them in it."""


def keep_unknown(kept: Kept, key: tuple[str, int | str], raw: bytes, message: Message) -> None:
    """Keep a message that was parsed from ``raw`` if it holds unknown fields; they leave it.

    Raises:
        ImageError: if a text of the message is not UTF-8.
    """
    check_texts(message)
    if holds_unknown(message, raw):
        kept[key] = raw


def check_texts(message: Message) -> None:
    """Refuse text that is not UTF-8: protobuf hands it out as bytes, and would not take it back.

    Raises:
        ImageError: names the field.
    """
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                check_texts(inner)
        elif field.type == field.TYPE_STRING and not isinstance(value, str):
            raise ImageError(f"its field {field.name} holds {value!r}, which is not UTF-8")


def holds_unknown(message: Message, raw: bytes) -> bool:
    """Drop all unknown fields from a message parsed from ``raw``; return whether it had some."""
    message.DiscardUnknownFields()
    if message.ByteSize() == len(raw):
        return False
    # Either so, or ``raw`` says the same in an uncommon way.
    again = type(message).FromString(raw)
    before = again.SerializeToString()
    again.DiscardUnknownFields()
    return again.SerializeToString() != before


def restore_unknown(kept: Kept, key: tuple[str, int | str], message: Message) -> None:
    """Put the unknown fields that were kept under ``key`` into a message about to be written."""
    raw = kept.get(key)
    if raw is not None:
        _graft(message, type(message).FromString(raw))


def _graft(new: Message, old: Message) -> None:
    known = old.ListFields()
    for field, value in known:
        if field.message_type is None:
            continue
        if field.is_repeated:
            for ours, theirs in zip(getattr(new, field.name), value, strict=False):
                if _same(ours, theirs):
                    _graft(ours, theirs)
        elif new.HasField(field.name):
            _graft(getattr(new, field.name), value)
    shell = type(old)()
    shell.CopyFrom(old)
    for field, _ in known:
        shell.ClearField(field.name)
    rest = shell.SerializePartialToString()
    if rest:
        new.MergeFromString(rest)


def _same(ours: Message, theirs: Message) -> bool:
    """Return whether two messages agree in all that we know: a changed block is another block."""
    plain = type(theirs)()
    plain.CopyFrom(theirs)
    plain.DiscardUnknownFields()
    return plain == ours
