"""What operators and controllers tell one another through ZooKeeper, beside the election."""
