"""Our compressed streams against those of Hadoop's own codec classes, in both directions."""

from collections.abc import Iterator
from subprocess import DEVNULL

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.local.cluster.java import class_path, find_jars, find_java
from namenode_sim.image.codecs import (
    BZIP2_CODEC,
    GZIP_CODEC,
    LZ4_CODEC,
    SNAPPY_CODEC,
    ZLIB_CODEC,
    compressor,
    decompressed,
)
from tests.namenode_sim.client_protocol.hadoop_shell import JavaObject

pytestmark = pytest.mark.interop

JARS = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar",
        "lz4-java-*.jar", "snappy-java-*.jar")  # fmt: skip
NOISE = bytes(i * i * 7919 >> 5 & 255 for i in range(70_000))
CONTENTS = {
    "empty": b"",
    "short": b"an inode",
    "longer than a block": b"part-00000 " * 60_000,
    "noise": NOISE * 9,
}


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaObject]:
    java, classes = find_java(), class_path(*JARS)
    port, token, process = launch_gateway(
        jarpath=str(next(find_jars().glob("py4j-*.jar"))),
        classpath=classes,
        javaopts=["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=str(java.executable),
        die_on_exit=True,
        enable_auth=True,
        redirect_stderr=DEVNULL,
        redirect_stdout=DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(10)
    finally:
        process.kill()


def _codec(jvm: JavaObject, name: str) -> JavaObject:
    configuration = jvm.org.apache.hadoop.conf.Configuration(False)
    codec = getattr(jvm.org.apache.hadoop.io.compress, name.rpartition(".")[2])()
    codec.setConf(configuration)
    return codec


def _compressed_by_java(jvm: JavaObject, name: str, plain: bytes) -> bytes:
    out = jvm.java.io.ByteArrayOutputStream()
    stream = _codec(jvm, name).createOutputStream(out)
    for start in range(0, len(plain), 50_000):
        stream.write(plain[start : start + 50_000])
    stream.close()
    return bytes(out.toByteArray())


def _decompressed_by_java(jvm: JavaObject, name: str, packed: bytes) -> bytes:
    source = jvm.java.io.ByteArrayInputStream(packed)
    return bytes(_codec(jvm, name).createInputStream(source).readAllBytes())


@pytest.mark.parametrize("name", [ZLIB_CODEC, GZIP_CODEC, BZIP2_CODEC, LZ4_CODEC, SNAPPY_CODEC])
@pytest.mark.parametrize("content", CONTENTS)
def test_hadoop_reads_our_streams_and_we_read_its(jvm: JavaObject, name: str, content: str) -> None:
    plain = CONTENTS[content]
    packed = _compressed_by_java(jvm, name, plain)
    assert b"".join(decompressed(iter([packed]), name)) == plain
    assert b"".join(decompressed(iter([packed, packed]), name)) == plain * 2
    stream = compressor(name)
    ours = stream.compress(plain) + stream.flush()
    assert _decompressed_by_java(jvm, name, ours) == plain
    assert b"".join(decompressed(iter([ours]), name)) == plain
