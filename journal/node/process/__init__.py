"""The JournalNode's process: its commands, and the start and stop of its servers."""
