"""Settings of all tests."""

from hypothesis import settings

# time limits of single examples say more about the machine than about the code
settings.register_profile("dualcoll", deadline=None)
settings.load_profile("dualcoll")
