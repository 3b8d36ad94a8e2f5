package runner

// AtOnce is how many runs of a worker go from one wait to the next at the same time.
const AtOnce = atOnce
