"""The checkpoint service: watches a cluster, merges, uploads."""
