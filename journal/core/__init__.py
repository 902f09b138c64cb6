"""What one JournalNode decides about one journal, without touching a disk or a socket."""
