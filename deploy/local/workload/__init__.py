"""Clients that write and read under failovers, and the checks of what they were promised."""
