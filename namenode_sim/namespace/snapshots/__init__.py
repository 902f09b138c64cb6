"""Snapshots: diffs of inodes, references of moved ones, and what a deletion leaves behind."""
