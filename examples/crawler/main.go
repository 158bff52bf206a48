// A polite crawler: it and all others that run ask each host for two pages a second at most, evenly, first come first served.
//
//	go -C examples run ./try go run ./crawler http://127.0.0.1:8000/a http://127.0.0.1:8000/b
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.ReadTimeout = 70 * time.Second // a reply may take the minute that turn waits for; the default is 3 seconds
	options.MaxRetries = -1                // a call that asks again is at the end of the queue
	limiter := redis.NewClient(options)    // its pool has a connection for each call that waits

	pages := make(chan string)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for page := range pages {
				if err := fetch(limiter, page); err != nil {
					log.Fatal(err) // without a limiter it does not crawl: nobody would know how fast
				}
			}
		})
	}
	for _, page := range os.Args[1:] {
		pages <- page
	}
	close(pages)
	workers.Wait()
}

func fetch(limiter *redis.Client, page string) error {
	u, err := url.Parse(page)
	if err != nil {
		return err
	}
	if err := turn(limiter, u.Host); err != nil {
		return fmt.Errorf("%s: %w", u.Host, err)
	}
	response, err := http.Get(page)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode, page)
	return nil
}

// turn returns when the host may be asked.
func turn(limiter *redis.Client, host string) error {
	for {
		reply, err := limiter.Do(context.Background(), "CL.TAKE", "host:"+host, "2/1s,burst=1", "WAIT", 60_000).Int64Slice()
		if err != nil {
			return err
		}
		limited, retryMS := reply[0] == 1, reply[3]
		if !limited {
			return nil
		}
		if retryMS < 0 {
			return fmt.Errorf("it is not to be crawled") // a rule denies it
		}
		time.Sleep(time.Duration(retryMS) * time.Millisecond) // the queue is longer than a minute
	}
}
