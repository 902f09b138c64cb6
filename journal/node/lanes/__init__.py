"""Write lanes: TCP connections for a writer's batches, which cost less than gRPC."""
