"""``nnha web``: the cluster as a page, for whoever looks."""
