// A budget of tokens for a language model. Before a request it takes what the request may cost at most; afterwards it gives back
// what was not used. A worker that dies in between costs nothing in the end: after two minutes all that it took flows back.
// The same request, sent again under its name, takes nothing more.
//
//	go -C examples run ./try go run ./tokens http://127.0.0.1:8000/model request-17 "Why is the sky blue?"
//
// A celld of your own needs a policy: CL.POLICY SET llm 100000/1m
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	key     = "llm:research" // a team's
	answer  = 1000           // tokens that the model may answer with
	longest = 2 * time.Minute
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
	reply, err := limiter.Do(ctx, "CL.TAKE", key, "@llm", "COST", most, "WAIT", 60_000, "LEASE", longest.Milliseconds(),
		"ID", name).Int64Slice()
	if err != nil {
		return 0, err
	}
	if limited, retryMS := reply[0] == 1, reply[3]; limited {
		return 0, fmt.Errorf("over budget; try again in %d ms", retryMS) // -1: it costs more than the whole budget
	}
	id := reply[7]
	used, err = complete(model, prompt)
	if err != nil {
		limiter.Do(ctx, "CL.RELEASE", key, id) // it has cost nothing
		return 0, err
	}
	return used, limiter.Do(ctx, "CL.SETTLE", key, id, used).Err()
}

// complete stands for the model's client.
func complete(model, prompt string) (used int64, err error) {
	client := http.Client{Timeout: longest} // the lease must not end before
	response, err := client.Post(model, "text/plain", strings.NewReader(prompt))
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
		return 0, fmt.Errorf("the model answers %s", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&reply)
	return reply.Usage.TotalTokens, err
}
