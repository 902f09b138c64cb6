"""The words of /imagetransfer that both of its ends know; Hadoop's."""

from typing import Final

PATH: Final = "/imagetransfer"
IMAGE_KINDS: Final = {"IMAGE": "fsimage_", "IMAGE_ROLLBACK": "fsimage_rollback_"}
"""Hadoop's names of the kinds of image that may be asked for, and how their files are named."""
