"""Models as users write them, and as functions of one flat vector."""

from supermodel.models.joint import Joint as Joint
from supermodel.models.model import Model as Model
from supermodel.models.noise import Gaussian as Gaussian
from supermodel.models.space import Space as Space
