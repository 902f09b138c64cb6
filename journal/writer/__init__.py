"""The writer of a journal (Hadoop's QuorumJournalManager): epoch, window, and channels to nodes."""
