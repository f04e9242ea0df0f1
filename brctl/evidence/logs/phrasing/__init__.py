"""What the words around a match make of it: a command, a fear, a kernel's own word, its end."""
