"""Which client may write an open file, and how a file is closed whose writer is gone."""
