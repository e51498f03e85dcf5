"""Models made from text: of languages, and of what is boilerplate."""
