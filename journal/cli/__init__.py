"""``nnha journal``: commands that look into the quorum journal or repair it."""
