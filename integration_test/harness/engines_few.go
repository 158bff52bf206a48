//go:build !all

package harness

// All tells that the tests run with build tag all.
const All = false

var packaged = always
