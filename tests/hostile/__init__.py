"""What an enemy sends: sound inputs, changed by a seed in the ways in which parsers go wrong."""
