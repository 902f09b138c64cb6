"""Kerberos: our own name, the servers that we call, and what becomes of our callers."""
