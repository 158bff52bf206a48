// Package celldtest is what tests of all packages share. It knows nothing of celld.
//
//	celldtest.Eventually(t, "the log has it", func() bool { return strings.Contains(log.String(), "ready") })
//	celldtest.Pass(time.Second)                                         // in a bubble of synctest: fake time
//	celldtest.ArrayOf(celldtest.BulkOf("key"), celldtest.IntOf(1))      // a reply's bytes
//	a := celldtest.NewAuthority(t)                                      // certificates: a.Sign("server", &x509.Certificate{…})
//	for _, c := range celldtest.ReadConversations(t, "testdata/redis")  // lines and their recorded replies
//	e := celldtest.NewAiling(t)                                         // an engine that answers as a test says; see NewAilingAt, InPipes
//	h := &celldtest.Hands{}                                             // a clock that the test moves
//	addr := celldtest.StartRedis(t)                                     // a real redis-server
//
// Where a program such as redis-server is not installed, Need skips the test. With CI=true in the environment the test fails instead.
package celldtest
