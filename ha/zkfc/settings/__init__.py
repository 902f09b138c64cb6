"""What a failover controller must know: its settings, and who may ask it for something."""
