"""The interfaces of a controller to the outside, which a simulation replaces in one place."""
