"""Are two data sets of one universe? See `supermodel.agreement.tension`."""
