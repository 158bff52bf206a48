//go:build long

package celldtest

// Thorough says that tests take the time that they need: with build tag long, as in `make test`. Otherwise they try a part of their cases,
// and `go test ./...` ends in two minutes.
const Thorough = true
