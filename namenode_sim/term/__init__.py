"""A term as standby or active: the role, its edit log, and the tailing of the journal."""
