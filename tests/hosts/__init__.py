"""A lab of several hosts, on which the pages of docs/ are carried out as they stand."""
