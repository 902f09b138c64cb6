"""What a NameNode and a failover controller offer each other over Hadoop RPC."""
