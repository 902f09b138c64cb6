"""``nnha fs``: the commands for files, without a JVM."""
