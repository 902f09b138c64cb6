"""DatanodeProtocol, as a NameNode serves it: what DataNodes tell, and what they are ordered."""
