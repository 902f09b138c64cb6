"""Protobuf messages of Hadoop's fsimage."""

from ha.lean_imports import import_protobuf

import_protobuf()
