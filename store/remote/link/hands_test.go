package link

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// keyOf is the key of a command with one, or of a probe.
func keyOf(command string) string {
	words := strings.Split(command, " ")
	if words[0] == "EVALSHA" {
		return words[3]
	}
	return words[1]
}

// askFor sends a write of a key, and waits for its outcome.
func (s *Link) askFor(key string, patience time.Duration) error {
	return s.outcome(&Request{Args: []string{"SET", "x"}, Keys: []string{key}, Deadline: time.Now().Add(patience)})
}

func (s *Link) outcome(r *Request) error {
	answered := make(chan error, 1)
	r.Done = func(_ rueidis.RedisMessage, err error) { answered <- err }
	s.Send(r)
	return <-answered
}

// patient is a deadline that only an engine misses that does not answer.
const patient = time.Minute

func isDown(err error) bool { return errors.As(err, new(*DownError)) }

func (s *Link) byHand() *celldtest.Hands {
	h := &celldtest.Hands{}
	h.Set(time.Unix(1_700_000_000, 0))
	s.options.Now, s.options.After, s.outage.since = h.Now, h.After, h.Now()
	return h
}
