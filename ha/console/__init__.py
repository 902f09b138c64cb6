"""What every command shares: options, exit codes, results, tables and formats of output."""
