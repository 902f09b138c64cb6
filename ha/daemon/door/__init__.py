"""Doors: how many callers each listener has, of whom, and which give way to newcomers."""
