"""The failover controller beside one NameNode: join, leave, take over, cede, hand over."""
