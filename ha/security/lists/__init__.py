"""Lists of users, groups and hosts, as Hadoop writes them."""
