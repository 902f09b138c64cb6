"""Which DataNodes may serve, which leave, and on which racks they stand."""
