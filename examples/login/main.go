// A login that counts wrong passwords. The fifth within 15 minutes blocks the account's logins for an hour, also those with the right
// password. A right password forgives the wrong ones before it.
//
//	go -C examples run ./try go run ./login ann secret
//
// A celld of your own needs a policy: CL.POLICY SET login 5/15m,algo=log,block=1h,block-at=full
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("RATE_LIMITER"), "redis://127.0.0.1:6379"))
	if err != nil {
		log.Fatalf("RATE_LIMITER: %v", err)
	}
	options.MaxRetries = -1 // a repeat would count as another attempt
	answer, err := login(redis.NewClient(options), os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}

// login says whether the user is let in, and if not, why.
func login(limiter *redis.Client, user, password string) (answer string, err error) {
	ctx, key := context.Background(), "login:"+user
	// Each attempt takes before the password is looked at, so guesses sent at once count, too.
	reply, err := limiter.Do(ctx, "CL.TAKE", key, "@login").Int64Slice()
	if err != nil {
		return "", err
	}
	switch limited, remaining, retryMS := reply[0] == 1, reply[2], reply[3]; {
	case limited:
		return fmt.Sprintf("blocked; try again in %d s", retryMS/1000), nil
	case !right(user, password):
		return fmt.Sprintf("wrong; %d more", remaining), nil // after 0 more the block lasts
	}
	return "welcome", limiter.Do(ctx, "CL.RESET", key).Err() // ends the block as well, if this was the fifth
}

// right stands for the look at the password.
func right(_, password string) bool { return password == "secret" }
