//go:build all

package engines

// All tells that the tests run with build tag all.
const All = true

var packaged = append(always, "redis-6.2", "redis-8.0", "valkey-8.0", "valkey-9.1")
