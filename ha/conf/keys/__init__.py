"""The typed keys of the configuration, by what they are about, and the table of all of them."""
