"""Protobuf messages of Hadoop's fsimage."""
