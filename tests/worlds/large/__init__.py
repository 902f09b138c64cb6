"""Images and logs of any size, calculated from a number of inodes and a seed."""
