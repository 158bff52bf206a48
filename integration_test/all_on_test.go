//go:build all

package integration_test

// allTests is whether `make test-all` runs.
const allTests = true
