"""The failover controller next to one NameNode: join, leave, take over, cede, hand over."""
