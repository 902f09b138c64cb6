"""Long campaigns: soaks look for faults, benches measure."""
