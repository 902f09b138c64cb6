"""Clients of HDFS that are not Hadoop's, each run in an environment of its own."""
