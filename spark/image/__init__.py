"""Bytes of an fsimage as numpy sees them: which messages lie where, without decoding them."""
