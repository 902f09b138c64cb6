"""Commands that explain: configuration, history, the active node, and what to repair."""
