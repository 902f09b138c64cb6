"""What both simulations stand on: virtual time, a network, a trace, planted bugs, shrinking."""
