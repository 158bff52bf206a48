// A budget for a language model: of requests and tokens a minute, and of requests in flight. Before a request it takes all
// three, with as many tokens as the request may cost at most; afterwards it gives back what was not used. A worker that dies in
// between costs nothing in the end: after two minutes all that it took flows back. The same request, sent again under its
// name, takes nothing more.
//
//	go -C examples run ./try go run ./tokens http://127.0.0.1:8000/model request-17 "Why is the sky blue?"
//
// A celld of your own needs a policy: CL.POLICY SET llm 600/1m 100000/1m,name=tokens 20/2m,algo=conc
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	key     = "llm:research"  // a team's
	answer  = 1000            // tokens that the model may answer with
	longest = time.Minute     // of a request
	leased  = 2 * time.Minute // so the lease does not end before the request does
)

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.ReadTimeout = 70 * time.Second // a reply may take the minute that a call waits for; the default is 3 seconds
	limiter := redis.NewClient(options)    // it may repeat a call: with an ID that does no harm
	used, err := ask(limiter, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("used", used)
}

// ask sends a request when the budget allows it, and returns how many tokens it has used.
func ask(limiter *redis.Client, model, name, prompt string) (used int64, err error) {
	ctx := context.Background()
	most := len(prompt) + answer // a byte is a token at most
	reply, err := limiter.Do(ctx, "CL.TAKE", key, "@llm", "COST", most, "OF", "tokens", "WAIT", 60_000,
		"LEASE", leased.Milliseconds(), "ID", name).Int64Slice()
	if err != nil {
		return 0, err
	}
	if limited, retryMS := reply[0] == 1, reply[3]; limited {
		return 0, fmt.Errorf("over budget; try again in %d ms", retryMS) // -1: it costs more than the whole budget
	}
	used, err = complete(model, prompt)
	if err != nil && !errors.Is(err, errRefused) {
		used = int64(most) // nobody knows what an answer costs that breaks off
	}
	return used, errors.Join(err, charge(ctx, limiter, reply[7], used))
}

// charge charges the tokens. A lease that has ended has given back all that it held, so these are taken once more.
func charge(ctx context.Context, limiter *redis.Client, lease, used int64) error {
	settled, err := limiter.Do(ctx, "CL.SETTLE", key, lease, used, "OF", "tokens").Int()
	if err == nil && settled == 0 {
		err = limiter.Do(ctx, "CL.TAKE", key, "@llm", "COST", 0, "COST", used, "OF", "tokens", "FORCE").Err()
	}
	return err
}

// errRefused is the error of a request that the model did not accept, so it has cost nothing.
var errRefused = errors.New("the model does not accept the request")

// complete stands for the model's client.
func complete(model, prompt string) (used int64, err error) {
	client := http.Client{Timeout: longest} // for the whole answer
	response, err := client.Post(model, "text/plain", strings.NewReader(prompt))
	if network := (*net.OpError)(nil); errors.As(err, &network) && network.Op == "dial" {
		return 0, fmt.Errorf("%w: %w", errRefused, err)
	}
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var reply struct {
		Usage struct {
			TotalTokens int64 `json:"total_tokens"`
		}
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%w: %s", errRefused, response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&reply)
	return reply.Usage.TotalTokens, err
}
