//go:build !all

package harness

const AllTests = false
