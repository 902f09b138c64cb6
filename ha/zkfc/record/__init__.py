"""What happened in a takeover: attempts, causes, history."""
