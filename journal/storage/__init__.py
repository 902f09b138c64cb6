"""One journal's files: their names, their durable writing, and what they say after a crash."""
