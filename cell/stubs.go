package cell

// Until it is there.
const Conc = Log + 1
