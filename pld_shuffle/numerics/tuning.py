"""Constants that steer speed and width, never validity; all of them are here.

Each was measured by `benchmarks/fit_tuning.py` or by the script that its comment names. Changing one may make an answer
slower or its bracket wider; every answer stays certified. Constants that a proof needs stand beside the proof.
"""

from __future__ import annotations

CLONE_COUNTS = 3000  # counts with a term of their own, or buckets, of a published clones pair
DRAWN_TOGETHER = 2**20  # random numbers held at a time by a randomizer: memory against overhead
PATIENCE = 2.0  # seconds after which a sweep starts worker processes, which take one to start
JOINT_BITS = 128  # bits of a user up to which a UnarySum is accounted jointly: width against speed
LOADING = 0.4  # seconds of a process in interpreted loops before compiled ones are loaded, which takes as long
COMPILING = 2.0  # the same before all are compiled, which takes half a minute, where none are kept
LAWS_PER_OCTAVE = 2  # of Renyi orders, which share laws: speed against width
LEAST_SHARE = 0.02  # of rtol that a law's points may spend for a Renyi divergence, at least: speed against width
PROFILE_USERS = 200  # users from which on Renyi divergences of coins come from their profile: speed
TAIL_PIECES = 64  # of a profile's tail that counts for Renyi divergences: speed against width
