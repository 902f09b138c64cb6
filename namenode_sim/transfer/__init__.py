"""Images between NameNodes, and what they ask one another over RPC."""
