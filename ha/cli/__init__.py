"""The command line: ``nnha`` and its commands for people and scripts."""
