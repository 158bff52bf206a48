// A service that asks celld before it answers, with go-redis. Start it, and call it until it refuses:
//
//	go -C examples run ./try go run ./go
//	curl -i http://127.0.0.1:8080/
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// patience is the most that a request waits for the limiter. An answer takes well under a millisecond on the same host.
const patience = 500 * time.Millisecond

type service struct {
	limiter *redis.Client
	down    atomic.Bool
}

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1
	options.MaxRetries = -1 // a call whose reply was lost may have counted: a second try would count twice
	logging.Disable()       // ask logs what fails, and only once
	s := &service{limiter: redis.NewClient(options)}

	http.HandleFunc("GET /{$}", s.hello)
	http.HandleFunc("GET /login", s.login)
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080")) // in a container 0.0.0.0:8080
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s/", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// hello's limit protects the service from overload. Without the limiter it lets everybody in: better a service
// that is busy than one that is down because of its limiter.
func (s *service) hello(w http.ResponseWriter, r *http.Request) {
	// 10 a minute, all at once if need be. Further limits may follow: "10/1m", "100/1h". Times are milliseconds.
	reply, err := s.ask(r, "CL.TAKE", "ip:"+address(r), "10/1m")
	if err == nil && !admit(w, "hello", reply, time.Millisecond) {
		return
	}
	fmt.Fprintln(w, "hello")
}

// login's limit stops people from guessing passwords. Without the limiter nobody may log in.
func (s *service) login(w http.ResponseWriter, r *http.Request) {
	// 5 a minute, and 4 + 1 of them at once. Times are seconds.
	reply, err := s.ask(r, "CL.THROTTLE", "login:"+address(r), 4, 5, 60)
	if err != nil {
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	} else if admit(w, "login", reply, time.Second) {
		fmt.Fprintln(w, "welcome")
	}
}

// ask returns the reply, whose first five integers are the same for both commands: limited, limit, remaining, retry after, reset after.
// It logs when it loses the limiter and when the limiter is back, not at each call.
func (s *service) ask(r *http.Request, command ...any) ([]int64, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	reply, err := s.limiter.Do(ctx, command...).Int64Slice()
	if r.Context().Err() != nil {
		return reply, err // the client has gone, which says nothing about the limiter
	}
	if s.down.Swap(err != nil) != (err != nil) {
		log.Printf("rate limiter: %v", cmp.Or(err, fmt.Errorf("answers again")))
	}
	return reply, err
}

// admit tells the client what the limiter says, and answers a limited request. Both limits are for a minute.
func admit(w http.ResponseWriter, name string, reply []int64, unit time.Duration) bool {
	limited, limit, remaining, retryAfter, resetAfter := reply[0] == 1, reply[1], reply[2], reply[3], reply[4]
	seconds := func(n int64) int64 { return int64((time.Duration(n)*unit + time.Second - 1) / time.Second) }
	w.Header().Set("RateLimit-Policy", fmt.Sprintf("%q;q=%d;w=60", name, limit))
	w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", name, remaining, seconds(resetAfter)))
	if limited && retryAfter >= 0 { // -1: it will never pass, for example because a rule denies it
		w.Header().Set("Retry-After", strconv.FormatInt(seconds(retryAfter), 10))
	}
	if limited {
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	}
	return !limited
}

// address is the peer's. Behind a proxy, use the address that the proxy reports.
func address(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}
