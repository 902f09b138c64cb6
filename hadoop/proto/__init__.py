"""ClientProtocol on the wire: message classes generated from our own text."""

from ha.lean_imports import import_protobuf

import_protobuf()
