"""Edits on a quorum of JournalNodes."""

import os

# gRPC's C library writes lines of its own among the JSON on stderr, of each stranger's handshake,
# too; what matters comes to us as an error.  It reads this when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
