"""One actor for each NameNode: registration, heartbeats, reports, commands."""
