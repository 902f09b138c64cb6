"""The DataNode: keeps blocks as Hadoop does, and serves them to clients and to other DataNodes."""
