# Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]} of stdout.

# The mechanism: replace it by a call of your code.  This one counts the positive records and adds noise of the
# two-sided geometric law, so it is epsilon-DP.  An output is NULL, a number, a text, TRUE or FALSE, or a list of these.
release <- function(dataset, epsilon) {
  positive <- vapply(dataset, function(record) is.numeric(record) && record > 0, logical(1))
  sum(positive) + rgeom(1, 1 - exp(-epsilon)) - rgeom(1, 1 - exp(-epsilon))
}

# Read the JSON value that starts with word number `at`; return it, and the number of the word that follows it.
read <- function(words, at = 1) {
  word <- words[at]
  if (is.na(word)) stop("this is no JSON")
  if (word %in% c("[", "{")) {
    items <- list()
    keys <- NULL
    at <- at + 1
    while (!words[at] %in% c("]", "}")) {
      if (word == "{") {
        keys <- c(keys, read(words, at)$value)
        at <- at + 1
      }
      found <- read(words, at)
      items <- c(items, found["value"])
      at <- found$at
    }
    return(list(value = setNames(items, keys), at = at + 1))
  }
  value <- switch(word, null = NULL, true = TRUE, false = FALSE,
    if (startsWith(word, '"')) parse(text = word)[[1]] else as.numeric(word)
  )
  list(value = value, at = at + 1)
}

# Write a value as JSON, a number with all of its digits.
written <- function(value) {
  if (is.list(value)) {
    paste0("[", paste(vapply(value, written, ""), collapse = ", "), "]")
  } else if (is.null(value)) {
    "null"
  } else if (is.numeric(value)) {
    sub("Inf", "Infinity", sprintf("%.17g", value))
  } else if (is.logical(value)) {
    tolower(value)
  } else {
    encodeString(value, quote = '"')
  }
}

epsilon <- if ("planted" %in% commandArgs(TRUE)) 2 else 1 # planted: half of the noise, which the audit must find
input <- file("stdin", "r")
while (length(line <- readLines(input, 1)) > 0) {
  answer <- tryCatch({
    words <- regmatches(line, gregexpr(r"("(?:[^"\\]|\\.)*"|[^][{}:,"\s]+|[][{}])", line, perl = TRUE))[[1]]
    request <- read(words)$value
    set.seed(request$seed %% 2147483647) # outputs can be repeated with the seed of their request
    outputs <- lapply(seq_len(request$n), function(i) release(request$dataset, epsilon))
    paste0('{"outputs": ', written(outputs), "}")
  }, error = function(problem) paste0('{"error": ', encodeString(conditionMessage(problem), quote = '"'), "}"))
  cat(answer, "\n", sep = "")
  flush(stdout())
}
