"""Calls of and about writers: create, append, blocks, leases, pipelines."""
