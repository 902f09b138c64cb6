"""Simulated lives of two NameNodes and their DataNodes: blocks through failovers."""
