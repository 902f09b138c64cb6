"""Generated code of the election's wire formats."""
