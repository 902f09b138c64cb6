"""The process of a controller: its command, its wiring, its RPC server, its supervisor."""
