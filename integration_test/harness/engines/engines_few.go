//go:build !all

package engines

// All tells that the tests run with build tag all.
const All = false

var packaged = always
