"""The decisions of one JournalNode about one journal, without I/O."""
