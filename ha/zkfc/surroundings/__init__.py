"""What a controller touches outside itself, in one place that a simulated world can replace."""
