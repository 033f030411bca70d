"""Constants that steer speed and width, never validity; all of them are here.

Each was measured by `benchmarks/fit_tuning.py` or by the script that its comment names. Changing one may make an answer
slower or its bracket wider; every answer stays certified. Constants that a proof needs stand beside the proof.
"""

from __future__ import annotations

JOINT_BITS = 128  # bits of a user up to which a UnarySum is accounted jointly: width against speed
PATIENCE = 2.0  # seconds after which a sweep starts worker processes, and loops are compiled, which takes longer
# The contour of the swap profile, c its saddle point in deviations: width a (1 + c); bend 2/c (a + b/c); centre
# c (1 - 1/(a c^4 + b c^2 + d)); strip: share of centre and width, and of the window; smoothing over the period, of two
# values and for more, and of laws without a heavy value, times sqrt(n), and at most; rule: (a + b strip^2), exponent of
# its error. Width.
CURVE = (1.2, 0.55, 0.17, 0.92, 3.3, 2.9, 0.62, 0.095, 1.2, 0.3, 4.5, 0.04, 16.0, 0.6)
# What it may cost: error of a bin of u; nodes, and bins; their end in deviations; atoms from which on Taylor's series
# is tried, and its terms; its error; pairs of values in the far part; lobes looked at singly; mass of a heavy value.
CONTOUR_WORK = (5e-5, 64, 7.5, 16, 1e-7, 8, 12, 0.1)
# The integral of a slot law: nodes at most and, with many groups, at least; nodes times groups.
SLOT_WORK = (60_000.0, 4_000.0, 2e6)
LOADING = 0.15  # seconds of a process in interpreted loops before compiled ones are loaded, which takes .3
PAIR_SECONDS = 0.01  # that one more mechanism in a log takes in interpreted loops, at least
LAWS_PER_OCTAVE = 2  # of Renyi orders, which share laws: speed against width
LEAST_SHARE = 0.02  # of rtol that a law's points may spend for a Renyi divergence, at least: speed against width
PROFILE_USERS = 200  # users from which on Renyi divergences of coins come from their profile: speed
TAIL_PIECES = 64  # of a profile's tail that counts for Renyi divergences: speed against width
NOISE_CELLS = 256  # of Laplace noise, in each half; of Gaussian noise twice as many: width against speed
TYPE_CELLS = 16  # of the types of Laplace noise for each unit of eps0, up to twice as many: width against speed
TYPE_ALLOWANCE = 0.002  # by how much these types may be worse than the worst law: width against speed
MOST_VIEWS = 200_000  # of a slot law, that are listed for its atoms instead of asking its profile: speed
SLOT_POINTS = 6_000  # of a profile whose values each cost a contour, in one law: width against speed
TYPED_POINTS = 240  # of a profile of a known randomizer's types, 1/2 for noise, 1/5 for many kinds: width against speed
FEW_PROFILES = 24  # profiles under one maximum up to which all are asked, without chords first: speed
# Deviations of noise in a cell of a step, for rough values, others, and the finest: width, speed.
STEP_CELLS = (0.05, 0.02, 0.01)
STEP_RTOL = 2e-6  # of an integral over steps, at least: width against speed
# Likelihood ratios of one round are summed, too: of so many steps or fewer, or where e^eps - 1 is more than its scale
# and the root of the steps, times so much for rough values, and for others; steps of replacement: speed.
SUMMED_STEPS = (20, 1.0, 5.0, 200.0)
# Knots of such a sum: for many values of one round, over the root of the number of doublings; at most; of a law at
# least, and times scale over the distance of points that is asked for: width against speed.
RATIO_KNOTS = (500.0, 5_400, 300, 36.0)
SUM_RTOL = (18.0, 9.0)  # times what a profile may err by, may one such value, or one of replacement: width, speed
STEP_POINTS = 2_000  # of a profile of steps in one law: width against speed
# Relative width of sizes that are taken as one: of cohorts, among which pairs and attacks are compared once, of scales
# and largest losses, which are sketched once: speed.
SIZE_ZONE = 0.1
LEAST_GAIN = 1e-4  # by which the swap theorem must beat stronger clones to be asked: speed against width

# Composition: which evaluator is asked, and how rtol is shared out.
NUMBERS = 2**23  # held at once, or kept, by a lattice, a table of nodes, a store of laws or a randomizer: memory
KEPT = 512  # coarse laws of pairs, and 1/4 as many readings of a composition, kept for other questions: memory
# Distinct pairs; with fewer, lattices take LATTICE_SHARE of what they may: narrower, and seldom made twice.
CHEAP_PAIRS = 256
LATTICE_SHARE = 0.3
MANY_COINS = 16  # times log(1/delta), from which on one round of coins is read from its profile: speed
MANY_ROUNDS = 300  # from which on a contour is cheaper than a lattice as a rule, and so few bound all nodes
ROUNDS_A_PAIR = 4  # so many more, for this rule, is each distinct pair: lattices transform every one
FAR = 10.0  # times rtol: a lattice so wide wants far more points, and the contour is asked
MOST_ATTEMPTS = 16  # at one question, each with less error
FUTILE_ATTEMPTS = 2  # where nothing is known from below, or rtol is not promised
BOOKED_SHARE = 1e-4  # of rtol for aliases, and for nodes left out; less asks for more nodes
SMOOTHING_SHARE = 0.1  # of rtol that a contour's smoothing takes
PREFIX_SHARE = 0.6  # of rtol that lattices of prefixes are planned with, as no bracket is measured
TRANSFORM_WORK = 14  # a transform costs so many operations a point; fewer nodes are summed one by one
INTEGRAL_WORK_PER_POINT = 40.0  # atoms times nodes of a contour for every point that a lattice would have
INTEGRAL_WORK = 2e8  # the same, at most; then the lattice is asked
DIRECT_WORK = 4e9  # multiplications of a direct convolution
SKETCHED_POINTS = 6.0  # of a sketched law, a standard deviation
# Rounds bought with Gaussian noise: cushions, in variances of a round, tried from the first one up as long as prices
# fall, and those tried where less is left. Width against speed.
CUSHIONS = (16.0, 64.0, 256.0, 1024.0, 4096.0)
SMALL_CUSHIONS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.0)
# The same: share of delta for far tails, the lattice's step in scales, the precision of a price, a fall that is
# worthwhile, rtol of Renyi prices, nodes at most.
EXCHANGE = (0.01, 0.03, 1e-4, 1e-3, 1e-4, 2**17)
# A certificate: distance of dots and period of contours in deviations, their smoothing for each distance, e^eps0/n
# below which bins of u are few, ratio of sizes that share a pair, share of 1 % that is near enough, attempts: width
# against the checker's time.
CERTIFICATE = (0.1, 12.0, 0.3, 1e-3, 1.005, 0.45, 9)
