//go:build all

package clients

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// TestValkeyGo uses valkey-go with its defaults, except that it has one connection and not two to four: so an announcement has arrived
// before the reply to the next CL.THROTTLE. It is rueidis under another name, whose tests go further, and takes a minute of CPU
// to compile.
func TestValkeyGo(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	srv := harness.Start(t, "--requirepass", "sesame")
	db, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{srv.Addr}, Password: "sesame", PipelineMultiplex: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for command, want := range map[string][]int64{
		"CL.THROTTLE 15 30 6000": {0, 16, 15, -1, 200},
		"CL.TAKE 5/1h,burst=2":   {0, 2, 1, -1, 720_000, 1, 0},
	} {
		words := celldtest.SplitQuoted(t, command)
		got, err := db.Do(ctx, db.B().Arbitrary(words[0]).Keys(words[0]).Args(words[1:]...).Build()).AsIntSlice()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", command, got, err, want)
		}
	}
	before := int64(0)
	for range 20 {
		if err := db.Do(ctx, db.B().Arbitrary("CL.THROTTLE").Keys("k").Args("100", "1", "3600").Build()).Error(); err != nil {
			t.Fatal(err)
		}
		now, err := db.DoCache(ctx, db.B().Get().Key("k").Cache(), time.Hour).AsInt64()
		if err != nil || now <= before {
			t.Errorf("DoCache: %d after %d, %v", now, before, err)
		}
		before = now
	}
}
