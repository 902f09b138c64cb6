"""Who calls, what each role may do, and what is written of it."""
