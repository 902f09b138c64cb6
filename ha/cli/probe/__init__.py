"""``nnha probe``: a health check that starts as quickly as a process can."""
