"""Starting whole clusters."""
