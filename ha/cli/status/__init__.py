"""``nnha status``: the whole cluster on one screen, or as JSON or YAML."""
