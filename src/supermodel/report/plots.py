"""Every plot in one place. Each takes and returns an Axes (`ax=None` makes a figure), and computes nothing new."""

from supermodel.report.answer_plots import answer as answer
from supermodel.report.answer_plots import bayes_factors as bayes_factors
from supermodel.report.answer_plots import calibration as calibration
from supermodel.report.answer_plots import drivers as drivers
from supermodel.report.answer_plots import matrix as matrix
from supermodel.report.answer_plots import sensitivity as sensitivity
from supermodel.report.corner_plot import corner as corner
from supermodel.report.posterior_plots import averaged as averaged
from supermodel.report.prediction_plots import predictions as predictions
from supermodel.report.record_plots import alpha as alpha
from supermodel.report.record_plots import crossings as crossings
from supermodel.report.record_plots import trace as trace
