"""Calls that change nothing."""
