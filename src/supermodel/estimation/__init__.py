"""Estimators: pure functions of the record of a run, each with an error."""

from supermodel.estimation.by_alpha.averages import Average as Average
from supermodel.estimation.by_alpha.averages import averaged as averaged
from supermodel.estimation.by_alpha.counts import counts as counts
from supermodel.estimation.by_alpha.endpoints import histogram as histogram
from supermodel.estimation.by_alpha.endpoints import kde as kde
from supermodel.estimation.by_alpha.endpoints import tanh_fit as tanh_fit
from supermodel.estimation.by_alpha.line_fit import line_fit as line_fit
from supermodel.estimation.by_alpha.nested import check_priors as check_priors
from supermodel.estimation.by_alpha.nested import savage_dickey as savage_dickey
from supermodel.estimation.by_alpha.nested import savage_dickey_from_conditional as savage_dickey_from_conditional
from supermodel.estimation.by_alpha.simplex_fit import piecewise_linear as piecewise_linear
from supermodel.estimation.by_alpha.simplex_fit import simplex as simplex
from supermodel.estimation.estimate import Estimate as Estimate
from supermodel.estimation.estimate import Evidences as Evidences
from supermodel.estimation.mbar import mbar as mbar
from supermodel.estimation.path_integral import path_integral as path_integral
from supermodel.estimation.rao_blackwell import density as density
from supermodel.estimation.rao_blackwell import shares as shares
