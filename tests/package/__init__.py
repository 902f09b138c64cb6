"""What is handed out: a wheel and an sdist that anybody can build again, and a list of parts."""
