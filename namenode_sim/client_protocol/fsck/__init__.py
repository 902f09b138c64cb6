"""What fsck and explain say of files and blocks: one source of facts, as text and as JSON."""
