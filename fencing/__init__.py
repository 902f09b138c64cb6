"""Fencing: making sure that a NameNode which may still believe itself active can do no harm."""
