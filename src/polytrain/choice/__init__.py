"""What a fit chooses for the user: the maps of the columns, alpha and rank, and how scores become probabilities."""
