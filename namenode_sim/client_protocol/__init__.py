"""What Hadoop's unmodified client talks to: ClientProtocol served from the namespace."""
