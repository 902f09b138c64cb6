"""Extended attributes as texts, and the calls that set, read and list them."""

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import XAttrProto
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

CREATE, REPLACE = 1, 2


def proto(text: str) -> XAttrProto:
    """``user.a=1``, or ``user.a`` without a value."""
    name, given, value = text.partition("=")
    space, _, name = name.partition(".")
    kind = XAttrProto.XAttrNamespaceProto.Value(space.upper())
    return XAttrProto(namespace=kind, name=name, value=value.encode() if given else None)


def written(xattr: XAttrProto) -> str:
    name = f"{XAttrProto.XAttrNamespaceProto.Name(xattr.namespace).lower()}.{xattr.name}"
    return f"{name}={xattr.value.decode()}" if xattr.HasField("value") else name


async def change(
    served: Served, text: str, src: str = "/f", flag: int = CREATE, user: str = "hdfs"
) -> None:
    await served.call("setXAttr", user=user, src=src, xAttr=proto(text), flag=flag)


async def seen(served: Served, *asked: str, src: str = "/f", user: str = "hdfs") -> list[str]:
    answer = await served.call("getXAttrs", user=user, src=src, xAttrs=[proto(a) for a in asked])
    assert isinstance(answer, calls.GetXAttrsResponseProto)
    return [written(xattr) for xattr in answer.xAttrs]


async def listed(served: Served, src: str = "/f", user: str = "hdfs") -> list[str]:
    answer = await served.call("listXAttrs", user=user, src=src)
    assert isinstance(answer, calls.ListXAttrsResponseProto)
    return [written(xattr) for xattr in answer.xAttrs]


async def prepared(*held: str, settings: Settings | None = None) -> Served:
    """``/f`` with these attributes, and ``/d``."""
    served = serve(settings=settings)
    await served.mkdirs("/d")
    await served.touch("/f")
    for text in held:
        await change(served, text)
    return served
