"""The offline edits viewer: edit logs as XML, JSON lines, statistics, and back."""
