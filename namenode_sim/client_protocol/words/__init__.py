"""The vocabulary of client calls: paths, permissions, errors, and the messages of answers."""
