"""DataTransferProtocol: blocks received, sent, copied and checked."""
