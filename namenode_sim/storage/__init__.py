"""Name directories: images, VERSION, locks, and local edit segments."""
