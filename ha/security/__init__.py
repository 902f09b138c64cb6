"""The caller of a daemon, what each role may do, and what is written of it."""
