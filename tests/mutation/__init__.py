"""Slips: small changes of the pure cores, each of which a test or a drawn world has to notice."""
