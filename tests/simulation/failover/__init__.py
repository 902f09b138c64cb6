"""Simulated lives of failover: real controllers on models of everything that they speak to."""
