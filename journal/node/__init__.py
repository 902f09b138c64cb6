"""The JournalNode daemon: the journal's core and storage behind gRPC and HTTP."""
