//go:build !all

package harness

// packaged are the Engines that are tested everywhere, beside Redis.
var packaged = []string{"redis-8.2", "valkey-8.1"}
