"""Packets, messages and connections of DataTransferProtocol."""
