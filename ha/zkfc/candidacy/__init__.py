"""May our NameNode stand for election?  The core, its rules, and their settings."""
