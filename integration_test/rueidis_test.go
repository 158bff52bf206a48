package integration_test

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/rueidis"
)

// TestRueidis uses rueidis, which speaks RESP3, pipelines by itself and wants HELLO, CLIENT SETINFO and CLIENT TRACKING
// at once. Its cache needs the server to announce changes, which celld does not: DisableCache is what its documentation
// says for such servers.
func TestRueidis(t *testing.T) {
	t.Parallel()
	for _, resp2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "RESP3", true: "RESP2"}[resp2], func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			srv := start(t, "--requirepass", "sesame")
			db, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{srv.addr}, Password: "sesame", ClientName: "limiter", DisableCache: true, AlwaysRESP2: resp2, ForceSingleClient: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			call := func(key, burst string) rueidis.Completed {
				return db.B().Arbitrary("CL.THROTTLE").Keys(key).Args(burst, "30", "6000").Build()
			}
			got, err := db.Do(ctx, call("k", "15")).AsIntSlice()
			if want := []int64{0, 16, 15, -1, 200}; err != nil || !slices.Equal(got, want) {
				t.Fatalf("CL.THROTTLE: %v, %v, want %v", got, err, want)
			}
			var calls rueidis.Commands
			for range 100 {
				calls = append(calls, call("piped", "49"))
			}
			allowed := 0
			for _, reply := range db.DoMulti(ctx, calls...) {
				if ints, err := reply.AsIntSlice(); err != nil {
					t.Fatal(err)
				} else if ints[0] == 0 {
					allowed++
				}
			}
			if allowed != 50 {
				t.Errorf("%d calls passed, of a burst of 50", allowed)
			}
			err = db.Dedicated(func(c rueidis.DedicatedClient) error {
				replies := c.DoMulti(ctx, c.B().Watch().Key("tx").Build(), c.B().Multi().Build(), call("tx", "15"), c.B().Exec().Build())
				rows, err := replies[3].ToArray()
				if err != nil {
					return err
				}
				if ints, err := rows[0].AsIntSlice(); err != nil || ints[2] != 15 {
					t.Errorf("in MULTI: %v, %v", ints, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := db.Do(ctx, db.B().Get().Key("nosuch").Build()).ToString(); !rueidis.IsRedisNil(err) {
				t.Errorf("GET of nothing: %v", err)
			}
			if name, err := db.Do(ctx, db.B().ClientGetname().Build()).ToString(); err != nil || name != "limiter" {
				t.Errorf("CLIENT GETNAME: %q, %v", name, err)
			}
			if err := db.Do(ctx, call("k", "x")).Error(); err == nil || err.Error() != "Cell error: Store error: Couldn't parse as integer: x" {
				t.Errorf("an error reply: %v", err)
			}
		})
	}
}
