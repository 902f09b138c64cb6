"""Edits on a quorum of JournalNodes."""

import os

# gRPC's C library writes lines of its own among the JSON on stderr, of each stranger's handshake,
# too; what matters comes to us as an error.  It reads this when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# It has no lowest version of TLS to set.  This one cipher of TLS 1.2 needs an RSA key, and ours are
# of ECDSA: no handshake of 1.2 succeeds.  The ciphers of 1.3 are always there.
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES256-GCM-SHA384"
