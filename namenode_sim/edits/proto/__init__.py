"""Protobuf messages inside edit-log ops."""

from ha.lean_imports import import_protobuf

import_protobuf()
