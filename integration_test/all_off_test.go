//go:build !all

package integration_test

const allTests = false
