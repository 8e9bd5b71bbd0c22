from hypothesis import settings

# No test here is about time, and a busy machine must not fail one.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
