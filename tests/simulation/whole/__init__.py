"""One world with everything: clients, NameNodes, controllers, JournalNodes and DataNodes.

All are the product's own; DataNodes, in every other world, are its decisions on model disks.  Only
what carries bytes is simulated: gRPC's channels, RPC connections, ZooKeeper, disks.
"""
