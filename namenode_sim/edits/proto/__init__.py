"""Protobuf messages inside edit-log ops."""
