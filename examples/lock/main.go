// A distributed lock: it adds 1 to a number that a server keeps, as often as you say, while others do the same.
//
// The lock ends five seconds after it was taken, whether its holder knows or not: the holder may be paused, or its clock may
// run slow. So the lock alone does not protect the number. Each holder gets an id that is higher than all before; it sends the
// id along, and the server refuses a write with a lower id than it has seen. A server that cannot do this may see two
// holders write at once. The lock also ends when celld loses its data: let it keep them on disk (--appendonly yes), and
// it goes on after a restart.
//
//	go -C examples run ./try go run ./lock http://127.0.0.1:8000/number 10
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	key  = "lock:number"
	lock = "1/5s,algo=conc"
)

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.ReadTimeout = 70 * time.Second // a reply may take the minute that a call waits for; the default is 3 seconds
	options.MaxRetries = -1                // a call whose reply was lost may have the lock, which then ends by itself
	limiter := redis.NewClient(options)

	number := os.Args[1]
	times, _ := strconv.Atoi(os.Args[2])
	for range times {
		if err := locked(limiter, func(id int64) error { return add(number, id) }); err != nil {
			log.Fatal(err)
		}
	}
}

// locked calls work with the lock held, and its id.
func locked(limiter *redis.Client, work func(id int64) error) error {
	ctx := context.Background()
	reply, err := limiter.Do(ctx, "CL.TAKE", key, lock, "WAIT", 60_000).Int64Slice()
	if err != nil {
		return err
	}
	if limited := reply[0] == 1; limited {
		return fmt.Errorf("no lock within a minute")
	}
	id := reply[7]
	defer limiter.Do(ctx, "CL.RELEASE", key, id) // answers 0, and does nothing, if the lock has ended or is another's
	return work(id)
}

func add(number string, id int64) error {
	response, err := http.Get(number)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	request, err := http.NewRequest("PUT", number, strings.NewReader(strconv.Itoa(n+1)))
	if err != nil {
		return err
	}
	request.Header.Set("Fencing-Token", strconv.FormatInt(id, 10))
	response, err = http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusConflict {
		return fmt.Errorf("another has had the lock since")
	}
	fmt.Println(n + 1)
	return nil
}
