"""A sound request of any kind, filled in from its description alone."""

from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_TEXT: Final = "/d/e"
_LEVELS: Final = 4


def sample(kind: type[Message], levels: int = _LEVELS) -> Message:
    """Return a message with every field set: to a path, to 1, or to the first name of an enum."""
    message = kind()
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and not levels:
            continue
        value: Any = _value(field, levels)
        if field.is_repeated:
            if value is not None:
                getattr(message, field.name).append(value)
        elif isinstance(value, Message):
            getattr(message, field.name).CopyFrom(value)
        elif value is not None:
            setattr(message, field.name, value)
    return message


def _value(field: Any, levels: int) -> object:  # noqa: ANN401 - one of two classes
    if field.message_type is not None:
        return sample(GetMessageClass(field.message_type), levels - 1)
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return b"0123456789abcdef" if field.type == FieldDescriptor.TYPE_BYTES else _TEXT
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return 1.0
        case _:
            return 1
