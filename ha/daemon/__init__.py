"""What every daemon shares: logs, the HTTP endpoint, and a process that starts and stops well."""
