"""Which DataNodes are to have which blocks in memory."""
