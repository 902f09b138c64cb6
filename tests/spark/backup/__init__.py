"""Backups: their manifest, and the folders that they lie in."""
