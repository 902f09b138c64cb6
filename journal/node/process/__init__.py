"""The JournalNode as a process: its command, and how its parts are put together."""
