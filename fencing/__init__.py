"""Fences a former active NameNode by the configured methods."""
