"""The journal as a NameNode sees it: one writer at a time, and readers."""
