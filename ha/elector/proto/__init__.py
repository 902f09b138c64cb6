"""Generated code of the election's wire formats."""

from ha.lean_imports import import_protobuf

import_protobuf()
