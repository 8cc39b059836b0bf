# The list of shaders, alphabetical.
