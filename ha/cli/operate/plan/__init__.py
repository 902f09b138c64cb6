"""What a command may do now: decided from one look at the cluster, without I/O."""
