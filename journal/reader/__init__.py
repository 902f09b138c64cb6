"""Readers of the journal: segment lists, streams of edits, tailing, comparison of copies."""
