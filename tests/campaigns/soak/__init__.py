"""Long campaigns that look for faults in what reads bytes of others."""
