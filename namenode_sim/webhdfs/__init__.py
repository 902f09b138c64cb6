"""WebHDFS: the calls of ClientProtocol over HTTP, as Hadoop's NamenodeWebHdfsMethods has them."""
