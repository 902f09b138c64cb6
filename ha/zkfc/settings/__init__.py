"""The settings of a failover controller."""
