"""SASL in Hadoop RPC: how the two sides carry the tokens of a mechanism."""
