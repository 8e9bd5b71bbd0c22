"""The paper's experiments and what they compare with."""
