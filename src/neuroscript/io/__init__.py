"""Text and files from outside: parsed strictly, shown safely, written as a whole."""
