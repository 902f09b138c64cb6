"""The two ends of a merge: where images and edits come from, and where the result goes."""
