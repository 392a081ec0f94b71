# Reference values by R's BayesFactor: Rscript reference.R, in this folder. Writes the data sets and reference.json.
suppressMessages({library(BayesFactor); library(lme4); library(MASS); library(jsonlite)})
options(BFprogress = FALSE)
set.seed(20)
data(puzzles)
# method = "simple" draws g from its prior: the integrand is bounded, so that the error it states is right. The default,
# importance sampling from a normal in ln g, has weights without a variance: Gas ~ Insul + Temp of whiteside is then
# 56.065 +- 0.016 with one seed, 56.331 +- 0.215 with another, and 56.1608 +- 0.0018 by the simple method.
ITERATIONS <- 1000000

sleep2 <- data.frame(extra = sleep$extra, group = paste0("g", sleep$group), ID = sleep$ID)
tooth <- transform(ToothGrowth, dose = factor(paste0("d", dose)))
whiteside <- data.frame(Insul = whiteside$Insul, Temp = whiteside$Temp, Gas = whiteside$Gas)
sleepstudy <- data.frame(Reaction = sleepstudy$Reaction, Days = sleepstudy$Days, Subject = paste0("s", sleepstudy$Subject))
sleepstudy$Subject <- factor(sleepstudy$Subject)
oats <- data.frame(B = oats$B, V = oats$V, N = factor(paste0("n", oats$N)), Y = oats$Y)
npk <- data.frame(block = paste0("b", npk$block), N = factor(paste0("n", npk$N)), P = factor(paste0("p", npk$P)),
                  K = factor(paste0("k", npk$K)), yield = npk$yield)
npk$block <- factor(npk$block)
puzzles$ID <- factor(paste0("p", puzzles$ID))
unbalanced <- warpbreaks[-c(1:5, 30, 31), ]
sets <- list(sleep = sleep2, tooth = tooth, mtcars = mtcars, attitude = attitude, puzzles = puzzles, warpbreaks = warpbreaks,
             unbalanced = unbalanced, chickwts = chickwts, whiteside = whiteside, sleepstudy = sleepstudy, oats = oats, npk = npk)
for (name in names(sets)) write.csv(sets[[name]], paste0(name, ".csv"), row.names = FALSE)

rows <- list()
keep <- function(label, data, bf) {
  found <- extractBF(bf)
  for (i in seq_len(nrow(found)))
    rows[[length(rows) + 1]] <<- list(call = label, data = data, model = rownames(found)[i],
                                      log_bf = log(found$bf[i]) , error = found$error[i])
}
lm_ <- function(formula, data, random = NULL) lmBF(formula, data = sets[[data]], whichRandom = random, iterations = ITERATIONS, method = "simple")

s <- sets$sleep
keep("ttest paired", "sleep", ttestBF(s$extra[s$group == "g1"], s$extra[s$group == "g2"], paired = TRUE))
keep("ttest unpaired", "sleep", ttestBF(s$extra[s$group == "g1"], s$extra[s$group == "g2"]))
keep("ttest less", "sleep", ttestBF(s$extra[s$group == "g1"], s$extra[s$group == "g2"], nullInterval = c(-Inf, 0)))
keep("ttest one", "sleep", ttestBF(s$extra, mu = 0.5))
keep("ttest wide", "chickwts", ttestBF(chickwts$weight[chickwts$feed == "casein"], chickwts$weight[chickwts$feed == "horsebean"], rscale = "wide"))
keep("anova", "tooth", anovaBF(len ~ supp * dose, sets$tooth, iterations = ITERATIONS, method = "simple"))
keep("anova", "warpbreaks", anovaBF(breaks ~ wool * tension, sets$warpbreaks, iterations = ITERATIONS, method = "simple"))
keep("anova", "unbalanced", anovaBF(breaks ~ wool * tension, sets$unbalanced, iterations = ITERATIONS, method = "simple"))
keep("anova", "chickwts", anovaBF(weight ~ feed, sets$chickwts))
keep("anova random", "puzzles", anovaBF(RT ~ shape * color + ID, sets$puzzles, whichRandom = "ID", iterations = ITERATIONS, method = "simple"))
keep("anova random", "npk", anovaBF(yield ~ N * P * K + block, sets$npk, whichRandom = "block", iterations = ITERATIONS, method = "simple"))
keep("anova random", "oats", anovaBF(Y ~ V * N + B, sets$oats, whichRandom = "B", iterations = ITERATIONS, method = "simple"))
keep("lm", "puzzles", lm_(RT ~ ID, "puzzles", "ID"))
keep("lm", "puzzles", lm_(RT ~ shape + ID, "puzzles", "ID"))
keep("lm", "puzzles", lm_(RT ~ shape + ID + shape:ID, "puzzles", "ID"))
keep("lm", "puzzles", lm_(RT ~ shape * color + ID + shape:ID + color:ID, "puzzles", "ID"))
keep("lm", "sleepstudy", lm_(Reaction ~ Subject, "sleepstudy", "Subject"))
keep("lm", "sleepstudy", lm_(Reaction ~ Days + Subject, "sleepstudy", "Subject"))
keep("lm", "whiteside", lm_(Gas ~ Temp, "whiteside"))
keep("lm", "whiteside", lm_(Gas ~ Insul, "whiteside"))
keep("lm", "whiteside", lm_(Gas ~ Insul + Temp, "whiteside"))
keep("lm", "whiteside", lm_(Gas ~ Insul + Temp + Insul:Temp, "whiteside"))
keep("lm", "mtcars", lm_(mpg ~ wt, "mtcars"))
keep("lm", "mtcars", lm_(mpg ~ wt + hp, "mtcars"))
keep("lm", "mtcars", lm_(mpg ~ wt * hp, "mtcars"))
keep("regression", "attitude", regressionBF(rating ~ ., attitude))
all_of_mtcars <- regressionBF(mpg ~ ., mtcars)
keep("regression", "mtcars", all_of_mtcars[seq(1, length(all_of_mtcars), by = 40)])
keep("correlation", "mtcars", correlationBF(mtcars$mpg, mtcars$wt))
keep("correlation", "attitude", correlationBF(attitude$rating, attitude$critical))
keep("correlation greater", "attitude", correlationBF(attitude$rating, attitude$critical, nullInterval = c(0, 1)))
keep("correlation wide", "attitude", correlationBF(attitude$rating, attitude$privileges, rscale = "ultrawide"))
keep("proportion 15 25 0.5", "", proportionBF(15, 25, p = 0.5))
keep("proportion 682 925 0.75", "", proportionBF(682, 925, p = 0.75))
keep("proportion greater 15 25 0.5", "", proportionBF(15, 25, p = 0.5, nullInterval = c(0.5, 1)))

about <- list(R = R.version.string, BayesFactor = as.character(packageVersion("BayesFactor")), iterations = ITERATIONS, method = "simple")
write_json(list(made_by = about, values = rows), "reference.json", auto_unbox = TRUE, digits = 10, na = "null", pretty = 0)
