"""Where a merged image goes: a directory, the NameNodes, or a Hadoop file system."""
