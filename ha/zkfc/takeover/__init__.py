"""Takes over: fences the former active, then promotes our NameNode."""
