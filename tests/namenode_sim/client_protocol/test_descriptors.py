"""Our message texts have the names, numbers and kinds of the descriptors in Hadoop's client jar."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from hadoop.proto import client_namenode_pb2, hdfs_types_pb2
from tests.namenode_sim.client_protocol.hadoop_shell import JavaObject, hadoop_shell

pytestmark = pytest.mark.interop

Field = tuple[str, int, int, str, str]


@pytest.fixture(scope="module")
def hadoop_files(tmp_path_factory: pytest.TempPathFactory) -> list[FileDescriptorProto]:
    directory: Path = tmp_path_factory.mktemp("conf")
    with hadoop_shell(directory, "hdfs") as shell:
        protos = shell.gateway.jvm.org.apache.hadoop.hdfs.protocol.proto
        return list(_files(protos.ClientNamenodeProtocolProtos.getDescriptor(), set()))


def _files(descriptor: JavaObject, seen: set[str]) -> Iterator[FileDescriptorProto]:
    name = str(descriptor.getName())
    if name in seen:
        return
    seen.add(name)
    yield FileDescriptorProto.FromString(bytes(descriptor.toProto().toByteArray()))
    for dependency in descriptor.getDependencies():
        yield from _files(dependency, seen)


def _messages(
    messages: list[DescriptorProto], prefix: str = ""
) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        yield f"{prefix}{message.name}", message
        yield from _messages(list(message.nested_type), f"{prefix}{message.name}.")


def _field(field: FieldDescriptorProto, package: str) -> Field:
    kind = field.type_name.removeprefix(f".{package}.").removeprefix(".hadoop.common.")
    return (
        field.name,
        field.type,
        field.label,
        kind.removeprefix(".hadoop.hdfs."),
        field.default_value,
    )


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, EnumDescriptorProto]]:
    yield from ((enum.name, enum) for enum in file.enum_type)
    for name, message in _messages(list(file.message_type)):
        yield from ((f"{name}.{enum.name}", enum) for enum in message.enum_type)


def our_files() -> list[FileDescriptorProto]:
    ours = []
    for module in (hdfs_types_pb2, client_namenode_pb2):
        file = FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        ours.append(file)
    return ours


def test_messages_have_hadoop_s_fields(hadoop_files: list[FileDescriptorProto]) -> None:
    theirs = {
        name: {field.number: _field(field, file.package) for field in message.field}
        for file in hadoop_files
        for name, message in _messages(list(file.message_type))
    }
    compared = 0
    for file in our_files():
        for name, message in _messages(list(file.message_type)):
            for field in message.field:
                assert _field(field, file.package) == theirs[name][field.number], name
                compared += 1
            required = {n for n, f in theirs[name].items() if f[2] == field_required()}
            assert required <= {field.number for field in message.field}, name
    assert compared > 400


def field_required() -> int:
    return int(FieldDescriptorProto.LABEL_REQUIRED)


def test_enums_have_hadoop_s_numbers(hadoop_files: list[FileDescriptorProto]) -> None:
    theirs = {
        name: {value.name: value.number for value in enum.value}
        for file in hadoop_files
        for name, enum in _enums(file)
    }
    for file in our_files():
        for name, enum in _enums(file):
            assert {value.name: value.number for value in enum.value} == theirs[name], name
