# The public names and where they live: `__init__.py` reads this list, and so do type checkers.
from .accountant import Accountant as Accountant
from .calibration import InfeasibleError as InfeasibleError
from .calibration import solve as solve
from .checkpoint import CheckpointError as CheckpointError
from .composition.composition import AccuracyWarning as AccuracyWarning
from .composition.groups import DrawnApart as DrawnApart
from .composition.pld import PLD as PLD
from .mechanisms import CountedBits as CountedBits
from .mechanisms import CountedHistogram as CountedHistogram
from .mechanisms import DiscretePair as DiscretePair
from .mechanisms import Epoch as Epoch
from .mechanisms import Gaussian as Gaussian
from .mechanisms import Laplace as Laplace
from .mechanisms import Mechanism as Mechanism
from .mechanisms import MixedRandomizers as MixedRandomizers
from .mechanisms import MixedRR as MixedRR
from .mechanisms import PoissonGaussian as PoissonGaussian
from .mechanisms import PoissonSampled as PoissonSampled
from .mechanisms import ShuffledLDP as ShuffledLDP
from .mechanisms import ShuffledRandomizer as ShuffledRandomizer
from .mechanisms import ShuffledRR as ShuffledRR
from .mechanisms import StickyCohort as StickyCohort
from .mechanisms import Subsampled as Subsampled
from .mechanisms import Summed as Summed
from .mechanisms import SummedNoise as SummedNoise
from .mechanisms import Threshold as Threshold
from .mechanisms import ZeroOut as ZeroOut
from .mechanisms.shuffled import Shuffled as Shuffled
from .numerics.compiled import warm_up as warm_up
from .numerics.sides import Bounds as Bounds
from .numerics.sides import Side as Side
from .numerics.validation import UnlikelyWarning as UnlikelyWarning
from .renyi import RenyiAccountant as RenyiAccountant
from .risk import AttackRisk as AttackRisk
from .sweeps import sweep as sweep

__version__: str
