"""Tests, checks and campaigns."""
