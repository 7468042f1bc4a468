"""What the compiler has to know of a mesh: its processes, and where data is."""
