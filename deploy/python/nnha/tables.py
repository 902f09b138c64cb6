"""For notebooks: ``from nnha.tables import register``, then ``register(spark)``."""

from nnha import activate

activate()

from spark.tables import register  # noqa: E402 - it is found only now

__all__ = ["register"]
