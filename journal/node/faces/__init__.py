"""The protocols that a JournalNode serves: gRPC, and Hadoop RPC for Java NameNodes."""
