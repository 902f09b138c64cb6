"""``nnha namenode --prepare``: makes a NameNode's directories ready, or says why it does not."""
