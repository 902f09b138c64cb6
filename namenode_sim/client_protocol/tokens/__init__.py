"""Delegation tokens: given, renewed and cancelled."""
