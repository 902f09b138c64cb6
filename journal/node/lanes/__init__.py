"""Write lanes: a second, cheaper transport for the batches of a writer."""
