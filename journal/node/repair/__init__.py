"""How a node gets back what it lacks: sync, fetched segments, scrubbing, and its vote."""
