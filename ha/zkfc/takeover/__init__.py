"""Become active: fence the former active, then promote our NameNode."""
