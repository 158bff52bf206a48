// Asks celld whether one more call of a key may pass, with go-redis.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address()})
	defer client.Close()

	// 30 calls a minute, 15 more at once.
	reply, err := client.Do(ctx, "CL.THROTTLE", "user:42", 15, 30, 60, 1).Int64Slice()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if limited, retryAfter := reply[0] == 1, time.Duration(reply[3])*time.Second; limited {
		fmt.Println("try again in", retryAfter)
	} else {
		fmt.Println("allowed,", reply[2], "left")
	}
}

func address() string {
	if a := os.Getenv("ADDR"); a != "" {
		return a
	}
	return "127.0.0.1:6379"
}
