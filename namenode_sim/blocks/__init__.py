"""Which blocks there are, and which storages hold replicas of them: a map next to the namespace."""
