"""How a client reaches JournalNodes: transports, messages, deadlines, one question to all."""
