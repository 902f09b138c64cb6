"""The messages of Hadoop RPC and of the two protocols of high availability."""

from ha.lean_imports import import_protobuf

import_protobuf()
