# ln Z by R's bridgesampling with its defaults. Draws come from a file; ln density is asked of the program that started this:
# a line of numbers goes out, one number comes back.
arguments <- commandArgs(trailingOnly = TRUE)
chains <- as.integer(arguments[2])
draws <- as.matrix(read.csv(arguments[1], header = FALSE))
colnames(draws) <- paste0("z", seq_len(ncol(draws)))
answers <- file("stdin", open = "r")
ask <- function(row, data) {
  cat("ask", format(row, digits = 17), "\n")
  flush(stdout())
  as.numeric(readLines(answers, n = 1))
}
set.seed(as.integer(arguments[3]))
parts <- lapply(split(seq_len(nrow(draws)), rep(seq_len(chains), each = nrow(draws) / chains)),
                function(rows) coda::mcmc(draws[rows, , drop = FALSE]))
bounds <- function(value) setNames(rep(value, ncol(draws)), colnames(draws))
found <- bridgesampling::bridge_sampler(coda::mcmc.list(parts), log_posterior = ask, data = NULL,
                                        lb = bounds(-Inf), ub = bounds(Inf), silent = TRUE)
cat("found", format(found$logml, digits = 17), format(sqrt(bridgesampling::error_measures(found)$re2), digits = 6), "\n")
