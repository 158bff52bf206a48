//go:build !all

package celldtest

// Thorough says that tests try all their cases, however long that takes: with build tag all, as in `make test-all`. Otherwise they try a
// part of them.
const Thorough = false
