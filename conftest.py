"""How hypothesis draws its examples: the same ones in every run, but for `make fuzz`, which looks for new ones."""

from hypothesis import settings

# No test is about time, and a busy machine must not fail one.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, print_blob=True)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")
