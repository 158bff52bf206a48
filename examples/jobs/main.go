// Workers for jobs of which three may run at once and five start in a second, however many workers there are. A job that outlives
// its worker makes room for another after ten seconds.
//
//	go -C examples run ./try go run ./jobs http://127.0.0.1:8000/a http://127.0.0.1:8000/b
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	key     = "jobs:reports"
	running = "3/10s,algo=conc" // a lease that is not renewed ends after 10 seconds
	starts  = "5/1s"
)

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.ReadTimeout = 70 * time.Second // a reply may take the minute that begin waits for; the default is 3 seconds
	options.MaxRetries = -1                // a call whose reply was lost may have got a lease
	limiter := redis.NewClient(options)    // its pool has a connection for each call that waits

	jobs := make(chan string)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for job := range jobs {
				if err := do(limiter, job); err != nil {
					log.Fatalf("%s: %v", job, err)
				}
			}
		})
	}
	for _, job := range os.Args[1:] {
		jobs <- job
	}
	close(jobs)
	workers.Wait()
}

// do runs a job when it may start.
func do(limiter *redis.Client, job string) error {
	id, err := begin(limiter)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	go renew(ctx, stop, limiter, id)
	defer limiter.Do(context.Background(), "CL.RELEASE", key, id)

	request, err := http.NewRequestWithContext(ctx, "POST", job, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	result, err := io.ReadAll(response.Body)
	fmt.Println(job, string(result))
	return err
}

// begin waits until a job may start, and returns the id of its lease.
func begin(limiter *redis.Client) (id int64, err error) {
	for {
		// It takes from both limits or from neither.
		reply, err := limiter.Do(context.Background(), "CL.TAKE", key, running, starts, "WAIT", 60_000).Int64Slice()
		if err != nil {
			return 0, err
		}
		if limited := reply[0] == 1; !limited {
			return reply[7], nil
		}
	}
}

var errLost = errors.New("its lease has ended")

// renew keeps the lease until the job is done, and stops the job if that fails: another may have its place.
func renew(ctx context.Context, stop context.CancelCauseFunc, limiter *redis.Client, id int64) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(3 * time.Second):
		}
		if kept, err := limiter.Do(ctx, "CL.RENEW", key, id, 10_000).Int64(); err != nil || kept == 0 {
			stop(cmp.Or(err, errLost))
			return
		}
	}
}
