"""The DataNodes as a NameNode knows them: who they are, what they have room for, who is alive."""
