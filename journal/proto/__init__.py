"""The calls of a JournalNode and the code generated from them."""

from ha.lean_imports import import_protobuf

import_protobuf()
