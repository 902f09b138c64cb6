"""The journal simulated: the real node, writer and reader on virtual time, under drawn faults."""
