"""Calls that change the tree and the attributes of its inodes."""
