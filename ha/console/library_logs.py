"""Keeps the libraries' own complaints off a person's screen."""

import logging

import structlog


def silence_libraries() -> None:
    """What the libraries complain about is in the command's own words already, in plainer ones."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.CRITICAL)
