"""Commands that change something: hand-over, pause, drain, fencing."""
