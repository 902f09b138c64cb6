"""Removes the lock of an owner that is silent in every way, before its session has run out."""
