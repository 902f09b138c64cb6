"""The DataNode as a process: its command, its settings, and how its parts are put together."""
