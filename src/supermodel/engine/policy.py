"""Every number that decides something in the engine: its name, its unit, and why it has this value.

The verdict's thresholds stand in `verdict/rules.py`; what is here steers the work, not the judgement.
"""

from __future__ import annotations

from typing import NamedTuple

# -- blocks and chains ------------------------------------------------------------------------------------------------

CHAINS = 16  # per edge: enough for a between-chain error, few enough that a cheap problem ends early
STEPS = 16  # per block: between blocks the run can be stopped, stored and looked at
DEAR_STEPS = 8  # where each is a dear call
BATCH = 64  # points evaluated before limits are looked at again
TOGETHER = 16  # points of one compiled program, whatever asks: as many as chains, so that few are computed in vain
PATIENCE = 2_000_000  # evaluations, where the user sets no limit
LONG, FEW_CROSSINGS = 25_000, 4  # draws of an edge after which fewer crossings than this will not become more
HOPELESS = 200_000  # draws of an edge beyond which more of the same would not mend it
FIRST_BLOCKS, LEAST_BLOCKS = 4, 2  # before the first estimate; on an edge that is short or that no ln B rests on
JUMP_BLOCKS = 6  # the first of jumps to a reference: chains stick where it is too low, which few draws may not show
WORTH = (0.2, 0.5)  # of what it cost to find a posterior that the first draws may cost: of few parameters, and of many,
MOST_WORTH = 16  # and blocks at most: an error from so many draws is known well
CHAPTER = 131_072  # draws of an edge that are kept at least; of twice as many the first half is kept as a report
WORTH_COMPILING = 128  # blocks of an edge from which on they are one compiled program: a second of moves in NumPy
GROWTH = 3  # each addition is a third of what is there: errors are looked at often enough, and not too often
MOST_ROUNDS = 12  # of warm-up on one edge: what has not settled by then will not

# -- moves ------------------------------------------------------------------------------------------------------------

BOLD = 0.5  # share of independent proposals: the rest are local and free stuck chains
BOLDER, WELCOME = 0.9, 0.5  # the share where more than this part of them is accepted: local steps then move less
JITTER = 0.2  # relative spread of the leapfrog step
LEAPFROGS = (2, 64)  # bounds: one leapfrog is Langevin; beyond 64 the step is hopeless
QUARTER_TURN = 1.4  # in units of the posterior's width: pi/2 takes a standard normal to an independent draw
EASY, EASY_FEW = 0.6, 0.25  # acceptance of independent draws above which a step of one evaluation beats a trajectory of
# about five gradients; the second for at most THREE coordinates, where even rare acceptances mix at once
THREE = 3

# -- ladders ----------------------------------------------------------------------------------------------------------

SPACING = 0.8  # nats of spread of ln J_a - ln J_b between neighbouring rungs: their overlap is then ample
MOST_RUNGS = 64
PADDING = 8  # ladders are padded to a multiple of this many rungs, so that they do not recompile
SHORT_PATH = (
    0.3  # thermodynamic length below which no warm-up is needed: the pilots' draws give the balance of a few rungs
)
DEAR_PATH = 1.5  # and below which dear calls are not spent on it
DIRECT = 0.05  # nats of spread above which two models are worth joining directly (with many models: DIRECT_MANY)
DIRECT_MANY, MANY = 1.0, 4  # measuring a pair has its price too

# -- exploration ------------------------------------------------------------------------------------------------------

FEW = 20  # parameters up to which hills are fitted and drawn from; beyond, chains with gradients or moved particles
FEW_GROWN = 40  # the same of models that begin at what a smaller one leaves: of one component more, few are new
PRIOR_SHARE = 0.05  # of the prior in a reference: what the hills miss is still proposed, at a cost of 5% of the jumps
EXACT = 1e-6  # nats of spread, prior draws included, below which a posterior is taken as normal to rounding
SURELY_NORMAL = 1e-3  # nats of spread that no bend of an affine warp can lower by much
NEARLY_EXACT = (
    0.15  # nats of spread that no richer reference can lower by much: an error of 0.005 from a thousand draws
)
GOOD = 0.6  # nats of spread up to which a simple reference is kept unless a richer one halves it
SURPRISED = 0.5  # nats of mean ln J - ln r by which one reference is nearer the posterior than another for certain
BEYOND = 0.1  # the same, by which a bent reference may be further: of more, it covers what is impossible
SMOOTH = 0.4  # nats of spread about a quadratic, times the root of the dimension, up to which a dear black box is taken for smooth
SMOOTH_BENT = 0.2  # the same of a quadratic that is bent, on points that were not fitted
NEARLY_NORMAL = 1.5  # nats of spread up to which one warped Gaussian serves as the reference
AGREE_ERRORS, AGREE_NATS = (
    4.0,
    0.25,
)  # two looks agree within this many errors plus this many nats (adaptive weights are
# biased low by about a tenth of a nat in ten dimensions)
VAGUE = 1.0  # nats of error from which a look vouches for nothing
VOUCHED = 3.0  # errors within which replicates and a ladder in trouble agree
DISAGREE_ERRORS = 6.0  # the answer is not to be used where every look is further from it than this
ENOUGH = 120  # effective draws that a look must rest on
MOST_HILLS = 32  # of a reference
FITTED = 4000  # draws that a reference is fitted to: more take seconds and change nothing
FLOOR = 5  # times the prior draws of a first look that are spent where most of them tie: nothing else finds what rises there
# A further replicate is run above this chance that a mode was missed by all: two that agree leave 0.03.
MISSED = 0.06
MISSED_MASS = 0.7  # nats: what is missed then is taken to be as much as what was found
CAPTURED = 0.5  # of an island's evidence that a replicate must give by itself to have found it
CAPTURED_BY = 10  # effective points of its own on which that must rest
# Beta law of the chance that a replicate finds an island: of those of the sky, about four in five.
CAPTURE_PRIOR = (2.0, 0.5)
MOST_MODES = 128  # that climbs keep: the hills of a weak planet's periods
# Widths of the prior, and the share of pairs of such steps that turn, above which no climb gets anywhere along a coordinate:
# 0.3 and more of periods, places and steps, 0.1 and less of all else in the sky.
ROUGH_STEP, ROUGH_TURNS = 1 / 16, 0.2
# Steps of a race after which half of the climbs go on; children that each bears, between halves, in what is held.
RACE_LAP, RACE_GENERATIONS = 3, 8
RACE_STEPS = 12  # evaluations, with gradient, that a start costs in a race
RACE_SHARE = 0.15  # of the patience that a race may cost: two replicates, their levels, and a further one have to fit
RACE_LAST = 16  # of so many starts, one climbs to the end
NEARBY = 1e-4  # widths of the prior: the least scale on which a child is displaced
STRATUM = 8  # draws of the prior that stand for a cell of equal probability, one of which starts
# Times the prior draws of a replicate, and a part of the patience, that are looked at for what stands out; the share of the draws
# that the quadratic is fitted to, and how often; and draws on either side with which one is compared.
SCAN, SCAN_SHARE = 4, 0.02
EXPLAINED, TRIMS, BESIDE = 0.9, 3, 12
CONCAVE_TO = 1e-9  # of ln J: rounding, of a middle beside its ends
# Parameters up to which prior draws may have met every basin: where there is no turn within so many meshes of theirs.
RESOLVED, RESOLVES = 2, 8.0
# Evaluations of patience below which replicates are smaller: two of them, their levels and a small race.
REPLICATED = 30_000
CALM = 8  # times fewer climbs race where no coordinate is rough, and the first climbs and what stood out led to one top
# Likelihood calls that looking for exchanges, circles and reflections of one model may take; what one leaves the next may use.
SYMMETRY_CALLS = (60, 20, 20)
# Chance that a draw of a mode has its components in another order, above which nothing is folded: an edge would pass through the
# mode; and below which two orders are equally good.
CONFUSED, NOT_CONFUSED = 0.3, 1e-3
MOST_CHOICES = 70  # of the components that a smaller model knows, over which a proposal is summed: four of eight
INSIDE = 0.05  # share of a reference in the kept labelling, below which it is not drawn from there: it knows no order
# Nats of spread of ln J - ln r from which on a model is no base for larger ones: what it extends is, with two new components.
BASE = 1.0
POOR = 0.5  # nats of spread of ln J - ln r from which on replicates that extend a smaller model answer, and not chains to r
PER_NUMBER, WIDER = 20, 1.1  # effective points for each number of what is new that shape its fit; and by how much that is wider
# Nats of ln Z below a smaller model, by so many errors, from which on a larger one needs no more than two replicates: in its
# favour stands less than a hundredth.
IMPROBABLE, IMPROBABLE_ERRORS = 5.0, 3.0
# Part of the patience that exploring the new component by itself may take; and its stream of random numbers.
ALONE, ALONE_STREAM = 0.1, 5000
# Share of the draws of growing models that are effective below which as much may have been missed as was found; of more in
# proportion less.
THIN = 0.005
# Nats, for each component that is more than the data need, of what lies where several stand close together in the place of one;
# and where there is one such component and pairs have a proposal of their own.
CLOSE_PAIRS, PAIRED = 0.5, 0.1
BLIND = 0.1  # of such a proposal that is the prior of all parameters
# Times that the new component is fitted, and drawn from as often as from the prior: at least, and at most until so many draws
# are effective, which a replicate's ln Z then rests on.
GROWN_FITS, MOST_FITS, GROWN_ENOUGH = 3, 10, 500
GROWN_DRAWS = 4  # times the prior draws of a replicate, of that proposal: what needs no further component is found by it
GROWN_COST = 60_000  # evaluations of one such replicate at full effort, about
GROWN_FIRST = 256  # prior draws of a replicate that extends a smaller model: a scale
# Of the profile of a new component: steps of the climbs in each of its cells, starts in one where others of its coordinates turn
# as well, and the part of its weight that is even over the prior.
PROFILE_STEPS, PROFILE_TRIES, PROFILE_EVEN = 20, 4, 0.1
# Of two components in the place of one: widths of its place that their middle may be off, cells along the middle and along the
# distance at first, octaves of the distance, how often cells are halved, and nats below the best from which on one is left whole.
PAIR_REACH, PAIR_CELLS, PAIR_OCTAVES, PAIR_HALVINGS, PAIR_DEPTH = 24.0, 8, 10, 3, 6.0
# Modes of the smaller model about which pairs are looked for: at most, and the part of its posterior that each must hold.
PAIR_MODES, PAIR_SHARE = 3, 0.1
PAIRS_FROM = 4  # replicates that a limited budget must have room for before it is spent on pairs
STARTS_PER_TURN = 4  # climbs of a race for each step of the prior's width in which ln L turns no more: its basins
# Of `count`: the probability of more components below which no more are tried, as no number in a text would change by it; and
# how often in a row ln Z must have fallen, for a box needs two change points, of which the first alone may be worth nothing.
COUNT_STOP, COUNT_FALLS = 0.01, 2
CUTS, CUTS_NOTHING = 48, 0.01  # places where a circle may be cut; part of the modes' mass near its own ends that is left there
DOF = 5.0  # of Student hills: tails heavier than most posteriors', yet 90% as efficient as Gaussian ones for these


HALF = 0.5  # of the usual calls, below which a limit makes them dear


class Effort(NamedTuple):
    """How hard to look: draws, climbs and replicates."""

    name: str
    first: int  # prior draws of the first look, with gradients to climb by
    first_black: int  # prior draws of a replicate
    level: int  # draws per level of a replicate
    second: int  # draws of a look that checks another (0: no check)
    climbs: int  # from summits among the draws, and as many from others
    slopes: int  # draws whose slopes tell whether ln J is concave, at most
    race: int  # climbs that a race begins with (0: none)
    replicates: int  # at most
    patience: int  # evaluations of exploring, of one model
    is_thrifty: bool = False  # whether a black box that looks smooth to a quadratic, and to a wide look, needs no more

    def scouts(self, d: int) -> int:
        """Draws whose slopes are looked at; of one or two parameters few, for probes cover them as well."""
        return self.slopes if d > 2 else min(20 * d**3, self.slopes)

    def scaled(self, by: float) -> Effort:
        """A smaller effort, for a smaller budget, which is a price put on calls."""
        if by >= 1:
            return self
        first, black, level, second = (
            max(int(by * n), least)
            for n, least in ((self.first, 48), (self.first_black, 64), (self.level, 24), (self.second, 24))
        )
        # A second look on a tenth of the draws would confirm nothing.
        second = second if self.second and by > 0.2 else 0
        return self._replace(
            first=first, first_black=black, level=level, second=second, climbs=max(int(by * self.climbs), 2),
            slopes=int(by * self.slopes), race=int(by * self.race), is_thrifty=self.is_thrifty or by < HALF,
        )  # fmt: skip


EFFORTS = {
    effort.name: effort
    for effort in (
        Effort("quick", 128, 256, 100, 0, 6, 0, 0, 1, 20_000, True),
        Effort("thrifty", 256, 500, 150, 80, 8, 500, 0, 1, 20_000, True),
        Effort("auto", 512, 2000, 500, 80, 12, 1000, 1000, 4, 100_000),
        Effort("patient", 512, 2000, 500, 80, 12, 1000, 4096, 5, 2_000_000),
        Effort("thorough", 4096, 10000, 2000, 600, 48, 1000, 16_000, 6, 2_000_000),
    )
}
EXPLORING = 0.5  # share of a limited budget that exploration may spend: the ladder needs the rest
TYPICAL = 9000  # evaluations that exploration of one model takes at the default effort, about
DEAR = 0.01  # seconds a call from which on the default is thrift: the usual looks would take minutes
CHEAP = 2e-4  # seconds a call below which the default is patience: a million of them take three minutes at most

# -- black boxes of many parameters ------------------------------------------------------------------------------------

FOLLOWERS, FOLLOWED = 256, 8  # particles that are moved in the coordinates of a reference; moves at first, then doubled
STILL = 0.2  # nats by which their mean ln J - ln r may still move when they have settled
OUTSIDE = 8.0  # nats of ln J - ln r beyond ln Z at a particle that the reference does not hold: of its own draws e^-8 are there
FEW_OUTSIDE = 0.005  # share of such particles up to which it serves: one of 256
STABLE = (
    0.2  # standard deviations by which no mean moves, and part by which no standard deviation does: the noise of 800
)
LOCAL = 0.3  # of the width that ln J has in a coordinate, of differences of values: noise of 0.001 nats evens out
APART = 1e-3  # correlation given all others below which, at all probes, two coordinates are not coupled
LATTICE_SHARE = 0.6  # of the evaluations that are left, that the probes of a black box, and then a lattice, may take

# -- roughness --------------------------------------------------------------------------------------------------------

LINES = 5  # short lines on which neighbours are looked at: their median stands a step that two of them cross
ON_LINE = 7  # new points on each line: with their middle three more than a quartic takes; 46 calls of a model in all
LINE = 0.03  # widths of the posterior: half a line at most
SMALL_SHARE = 0.02  # of what is left of the budget: looking at neighbours may cost no more

# -- cycles -----------------------------------------------------------------------------------------------------------

CLOSING_ERROR = 0.06  # nats: how well the way through the reference must be known before it can vouch for a direct edge
CLOSED = 3.0  # errors within which a direct edge and the way round must agree
