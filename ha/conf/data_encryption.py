"""Whether connections to DataNodes are encrypted by keys of the NameNodes."""

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.datanode import BLOCK_TOKENS
from ha.conf.keys.security import DATA_ALGORITHM, ENCRYPT_DATA_TRANSFER


def data_algorithm(conf: Configuration) -> str | None:
    """Return the cipher of SASL for encrypted connections, empty for any; None: they are not.

    Raises:
        ConfigurationError: they are to be, and there are no block tokens, whose keys this takes.
    """
    if not conf.get(ENCRYPT_DATA_TRANSFER):
        return None
    if conf.get(BLOCK_TOKENS) is False:
        raise ConfigurationError(
            f"{conf.where(ENCRYPT_DATA_TRANSFER)} is true, but there are no keys to encrypt with "
            f"while {BLOCK_TOKENS.name} is false. → Set both to true at all NameNodes and "
            "DataNodes, or neither."
        )
    return conf.get(DATA_ALGORITHM) or ""
