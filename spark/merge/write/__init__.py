"""Write the newer image: expand deletions, write parts, assemble them."""
