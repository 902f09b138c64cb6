"""Edits on a quorum of JournalNodes."""
