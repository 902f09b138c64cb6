"""What NameNode and DataNode share of WebHDFS: parameters, callers and refusals."""
