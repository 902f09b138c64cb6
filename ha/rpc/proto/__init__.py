"""The messages of Hadoop RPC and of the two protocols of high availability."""
