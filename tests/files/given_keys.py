"""Keys of connections to DataNodes, in the order in which they are asked for."""

from dataclasses import dataclass, field

from hadoop.proto import hdfs_types_pb2 as hdfs


@dataclass(slots=True)
class GivenKeys:
    """Gives the first of ``keys`` until it is refused; without any, nothing is encrypted."""

    keys: list[hdfs.DataEncryptionKeyProto] = field(default_factory=list)

    async def data_key(
        self, refused: hdfs.DataEncryptionKeyProto | None = None
    ) -> hdfs.DataEncryptionKeyProto | None:
        if refused is not None:
            self.keys.remove(refused)
        return next(iter(self.keys), None)


PLAIN = GivenKeys()
