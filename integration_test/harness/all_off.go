//go:build !all

package harness

// AllTests is whether `make test-all` runs.
const AllTests = false
