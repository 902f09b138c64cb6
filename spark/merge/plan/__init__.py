"""Plan a merge: which places of the image the edits ask about, and what lies there."""
