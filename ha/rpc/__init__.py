"""Hadoop RPC, version 9: frames and packets (pure), and a server and a client on asyncio."""
