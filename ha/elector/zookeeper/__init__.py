"""Accesses ZooKeeper: the client, its credentials and TLS, and the nameservice's znodes."""
