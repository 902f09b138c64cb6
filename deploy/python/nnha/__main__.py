"""``python -m nnha``: the command ``nnha``, also for the processes that nnha starts itself."""

from nnha.commands import main

main()
