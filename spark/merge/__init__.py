"""One image and its edits become a newer image, without a process that holds the namespace."""
