"""What operators and controllers say to one another through ZooKeeper, apart from the election."""
