"""What the program runs on and in: the machine, the interpreter, the source's commit."""
