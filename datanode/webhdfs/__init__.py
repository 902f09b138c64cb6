"""WebHDFS on a DataNode: the bytes of files over HTTP."""
