"""The sheets of a report: which figures each section shows, and in which words."""
