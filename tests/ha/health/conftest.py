"""No test here leaves a descriptor of a process open."""

from tests.held_processes import processes_let_go

__all__ = ["processes_let_go"]
