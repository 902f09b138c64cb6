"""DatanodeProtocol, as a NameNode serves it: what DataNodes report, and what they are ordered."""
