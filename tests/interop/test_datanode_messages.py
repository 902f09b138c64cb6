"""The messages of DataNodes have the names, numbers and kinds of Hadoop's own descriptors."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from hadoop.proto import (
    client_datanode_pb2,
    data_transfer_pb2,
    datanode_protocol_pb2,
    datanode_types_pb2,
    inter_datanode_pb2,
    namenode_protocol_pb2,
)
from tests.interop.hadoop_server import Hadoop, JavaObject

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

OURS = (
    client_datanode_pb2,
    data_transfer_pb2,
    datanode_protocol_pb2,
    datanode_types_pb2,
    inter_datanode_pb2,
    namenode_protocol_pb2,
)
THEIRS = (
    "NamenodeProtocolProtos",
    "ClientDatanodeProtocolProtos",
    "DataTransferProtos",
    "DatanodeProtocolProtos",
    "DatanodeLifelineProtocolProtos",
    "InterDatanodeProtocolProtos",
)
"""A name that two files give to different messages (errorReport) counts as the later one's."""
REQUIRED = int(FieldDescriptorProto.LABEL_REQUIRED)


def files(descriptor: JavaObject, seen: dict[str, FileDescriptorProto]) -> None:
    """Collect a file's descriptor and those that it imports."""
    name = str(descriptor.getName())
    if name not in seen:
        seen[name] = FileDescriptorProto.FromString(bytes(descriptor.toProto().toByteArray()))
        for dependency in descriptor.getDependencies():
            files(dependency, seen)


def messages(
    found: list[DescriptorProto], prefix: str = ""
) -> Iterator[tuple[str, DescriptorProto]]:
    for message in found:
        yield f"{prefix}{message.name}", message
        yield from messages(list(message.nested_type), f"{prefix}{message.name}.")


def enums(file: FileDescriptorProto) -> Iterator[tuple[str, EnumDescriptorProto]]:
    yield from ((enum.name, enum) for enum in file.enum_type)
    for name, message in messages(list(file.message_type)):
        yield from ((f"{name}.{enum.name}", enum) for enum in message.enum_type)


def shape(field: FieldDescriptorProto) -> tuple[object, ...]:
    """Return what two peers must agree on; packed and unpacked numbers differ on the wire."""
    kind = field.type_name.rsplit(".", 1)[-1]
    return (
        field.name, field.type, field.label, kind, field.default_value, field.options.packed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def hadoop_files(hadoop: Hadoop) -> list[FileDescriptorProto]:
    seen: dict[str, FileDescriptorProto] = {}
    for name in THEIRS:
        files(getattr(hadoop.hadoop.hdfs.protocol.proto, name).getDescriptor(), seen)
    return list(seen.values())


def our_files() -> list[FileDescriptorProto]:
    ours = []
    for module in OURS:
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        ours.append(file)
    return ours


def test_each_field_is_hadoop_s(hadoop_files: list[FileDescriptorProto]) -> None:
    theirs = {
        name: {field.number: field for field in message.field}
        for file in hadoop_files
        for name, message in messages(list(file.message_type))
    }
    compared = 0
    for file in our_files():
        for name, message in messages(list(file.message_type)):
            for field in message.field:
                assert shape(field) == shape(theirs[name][field.number]), name
                compared += 1
            required = {n for n, field in theirs[name].items() if field.label == REQUIRED}
            assert required <= {field.number for field in message.field}, name
    assert compared > 190


def test_each_enum_has_hadoop_s_numbers(hadoop_files: list[FileDescriptorProto]) -> None:
    theirs = {
        name: {value.name: value.number for value in enum.value}
        for file in hadoop_files
        for name, enum in enums(file)
    }
    compared = 0
    for file in our_files():
        for name, enum in enums(file):
            assert {value.name: value.number for value in enum.value} == theirs[name], name
            compared += 1
    assert compared == 12
