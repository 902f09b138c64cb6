"""Decides whether our NameNode is a candidate in the election: the core, its rules and settings."""
