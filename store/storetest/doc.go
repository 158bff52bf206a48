// Package storetest tests stores: one suite for all of them, wherever they keep their states.
//
//	func TestLimiter(t *testing.T) {
//		storetest.Run(t, func() store.Limiter { return memory.New(memory.Options{}) })
//	}
//
// Run tests decisions, RunStore whole stores, and RunWaits those who wait. Later is a Limiter for tests of callers that must wait for an
// answer.
package storetest
