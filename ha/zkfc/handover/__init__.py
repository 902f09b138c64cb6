"""Hand-overs on request: cede, graceful failover, a stop of the controller, membership."""
