"""What a NameNode does before it serves: make a name directory, or mend one."""
