"""Records of takeovers: the last attempt, the causes, the history, thread dumps."""
