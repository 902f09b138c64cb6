"""Keeps the libraries' own complaints off a person's screen."""

import logging

import structlog


def silence_libraries() -> None:
    """Drop the libraries' log lines: the command reports their errors in its own words."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.CRITICAL)
