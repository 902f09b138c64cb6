"""Where a merge's image and edits come from: directories, a cluster, or Hadoop's file systems."""
