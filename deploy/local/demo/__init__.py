"""Commands that start a local cluster and show it at work."""
