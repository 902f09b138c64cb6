"""The only way to ZooKeeper: one client, its credentials, TLS, and the nameservice's znodes."""
