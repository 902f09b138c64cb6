"""The owner of one journal: takes requests in order, runs the core, and makes effects durable."""
