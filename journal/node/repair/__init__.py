"""Repairs a JournalNode: background sync, downloads, the scrubber, and a learner's admission."""
