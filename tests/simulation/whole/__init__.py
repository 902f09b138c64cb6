"""One world with everything: clients, NameNodes, controllers and JournalNodes, all the product's.

Only what carries bytes is simulated: gRPC's channels, RPC connections, ZooKeeper, disks.
"""
