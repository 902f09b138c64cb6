"""The calls of a JournalNode and the code generated from them."""
