"""High availability for NameNodes: which one may be active, and how that changes."""
