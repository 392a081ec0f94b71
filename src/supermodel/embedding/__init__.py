"""The supermodel and its parts: the coordinate alpha, the combinations, the warps."""

from supermodel.embedding import coordinate as coordinate
from supermodel.embedding.supermodel import Supermodel as Supermodel
from supermodel.embedding.warp import Warp as Warp
