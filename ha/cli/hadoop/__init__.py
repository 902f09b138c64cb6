"""Hadoop's haadmin, and failover of NameNodes that have no failover controller."""
