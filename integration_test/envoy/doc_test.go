// Package envoy tests Envoy's rate limit service: beside envoyproxy/ratelimit, and with a real Envoy in front.
package envoy
