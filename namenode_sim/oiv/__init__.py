"""The offline image viewer: what an fsimage holds, in the forms of Hadoop's ``hdfs oiv``."""
