//go:build race || long

package celldtest

// Thorough says that tests take the time that they need: with the race detector and with build tag long, so in `make test`. Otherwise
// they try a part of their cases, and `go test ./...` ends in two minutes.
const Thorough = true
