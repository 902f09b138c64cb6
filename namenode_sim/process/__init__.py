"""The process of a NameNode: its command, its start, its RPC and HTTP faces."""
