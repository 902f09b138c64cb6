"""``nnha doctor``: checks of this machine, of the cluster, and of the znodes."""
