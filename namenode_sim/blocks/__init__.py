"""Which blocks there are, and which storages hold replicas of them: a map beside the namespace."""
