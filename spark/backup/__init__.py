"""Backups of a whole cluster: image, edits, znodes and the authority in one directory."""
