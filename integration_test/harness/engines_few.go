//go:build !all

package harness

// All tells that the tests run with build tag all.
const All = false

// packaged are the Engines that are tested everywhere, beside Redis.
var packaged = []string{"redis-8.2", "valkey-8.1"}
