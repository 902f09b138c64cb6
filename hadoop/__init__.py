"""What a NameNode and a DataNode share: HDFS's messages, durable files, locked directories."""
