// Package limit is celld's own commands on limits: named limits and rules, leases, what keys hold, and who is limited.
//
//	rows := limit.Rows(func() limit.Server { return limit.Server{Store: store, InForce: policies} })
//
// Policies and rules are changed where the store keeps them, which may answer later; in memory it answers at once.
package limit
