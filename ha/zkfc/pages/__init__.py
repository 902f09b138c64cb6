"""What operators see of a controller: /status, gauges, metrics."""
