"""The namespace as a state machine: inodes, the tree, and what each edit changes in them."""
