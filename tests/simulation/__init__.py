"""Worlds on virtual time: the journal, and failover, under drawn faults."""
