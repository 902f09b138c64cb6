"""Checkpoints made offline: an image and the edits behind it become a newer image."""
