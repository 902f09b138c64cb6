"""A NameNode small enough to read, real enough for Hadoop's own clients."""
