//go:build all

package harness

var packaged = []string{"redis-6.2", "redis-8.0", "redis-8.2", "valkey-8.0", "valkey-8.1", "valkey-9.1"}
