"""Files of HDFS without a JVM: the calls of a client, and how it reads and writes blocks."""
