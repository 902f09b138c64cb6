"""SASL: how callers of Hadoop RPC and of data transfer prove themselves by ticket or token."""
