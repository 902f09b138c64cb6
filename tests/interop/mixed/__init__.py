"""A cluster of which each daemon is Hadoop's or ours, and may be replaced while clients write."""
