"""High availability for NameNodes: who may be active, and how that changes."""
