"""The one writer of the journal: its epoch, its window, and a channel to each JournalNode."""
