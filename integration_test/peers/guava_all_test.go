//go:build all

package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"celld/integration_test/harness"
	"celld/internal/celldtest"
)

// guavaJar is where Debian's libguava-java puts it. `make tools` installs that.
const guavaJar = "/usr/share/java/guava.jar"

// TestGuava asks Guava's RateLimiter.create(5).tryAcquire() and `CL.TAKE k 5/1s` the same: 20 calls at once of a limiter that
// has rested, and 20 more in two seconds.
//
// Guava lets one more through at once: a call passes when those before it are paid for, and is paid for by those behind it. In two
// seconds both let through 10; one more or less is the machine's.
func TestGuava(t *testing.T) {
	t.Parallel()
	java := celldtest.Need(t, "java")
	if _, err := os.Stat(guavaJar); err != nil {
		celldtest.Missing(t, "no Guava: %v", err)
	}
	srv := harness.Start(t)
	db := redis.NewClient(&redis.Options{Addr: srv.Addr, Protocol: 2})
	defer db.Close()
	celldtest.Again(t, func(attempt string) string {
		guava := make(chan string, 1)
		go func() {
			out, err := exec.CommandContext(t.Context(), java, "-cp", guavaJar, "testdata/guava/Rate.java").CombinedOutput()
			if err != nil {
				out = fmt.Appendf(out, ": %v", err)
			}
			guava <- string(out)
		}()
		passes := func() int {
			reply, err := db.Do(context.Background(), "CL.TAKE", "k"+attempt, "5/1s").Slice()
			if err != nil {
				t.Fatal(err)
			}
			return 1 - int(reply[0].(int64))
		}
		atOnce, paced := 0, 0
		for range 20 {
			atOnce += passes()
		}
		start := time.Now()
		for i := range 20 {
			time.Sleep(time.Until(start.Add(time.Duration(i+1) * 100 * time.Millisecond)))
			paced += passes()
		}
		var theirAtOnce, theirPaced int
		out := <-guava
		if n, err := fmt.Sscan(out, &theirAtOnce, &theirPaced); n != 2 {
			t.Fatalf("Guava: %s, %v", out, err)
		}
		if atOnce != 5 || paced < 9 || paced > 11 || theirAtOnce != atOnce+1 || theirPaced < 9 || theirPaced > 11 {
			return fmt.Sprintf("at once celld %d, Guava %d; in two seconds celld %d, Guava %d", atOnce, theirAtOnce, paced, theirPaced)
		}
		return ""
	})
}
