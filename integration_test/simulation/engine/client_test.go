package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"celld/cell"
	"celld/internal/celldtest"
	"celld/internal/enginetest"
	"celld/store"
	"celld/store/policy"
	"celld/store/remote"
)

// user is a celld's Store on an Engine. Its limits are of 100 calls, each of which takes 1,000 s to come back.
type user struct {
	*remote.Store
	t *testing.T
}

// faulty runs a test in fake time, with a Store on an Engine.
func faulty(t *testing.T, o enginetest.Options, test func(t *testing.T, e *enginetest.Engine, u *user)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.Start(t, o)
		test(t, e, open(t, e, e.Dial))
	})
}

func open(t *testing.T, e *enginetest.Engine, dial func(context.Context, string) (net.Conn, error)) *user {
	s, err := remote.Open(remote.Options{URL: e.URL(), Dial: dial, Policies: &policy.Set{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(s, e) })
	return &user{s, t}
}

func closeStore(s *remote.Store, e *enginetest.Engine) {
	s.Close()
	for _, n := range slices.Concat(e.Nodes(), e.Sentinels()) {
		n.Kill() // rueidis may leave a connection that it made while it was closed
	}
	celldtest.Pass(time.Minute) // until all that it has begun has ended
}

type waker chan struct{}

func (w waker) Wake() { w <- struct{}{} }

// take takes one of a key's calls, and returns how many are left.
func (u *user) take(key string) (left int64, err error) {
	u.t.Helper()
	bucket, err := cell.NewBucket(99, 1, 1000)
	if err != nil {
		u.t.Fatal(err)
	}
	r := []store.Request{{Key: []byte(key), Bucket: bucket, Quantity: 1}}
	w := make(waker, 1)
	if !u.ThrottleBatch(r, store.Access{NowNS: time.Now().UnixNano()}, w) {
		<-w
	}
	return r[0].Decision.Remaining, r[0].Err
}

// leaves takes one, after which so many must be left.
func (u *user) leaves(key string, want int64) {
	u.t.Helper()
	if left, err := u.take(key); err != nil || left != want {
		u.t.Errorf("%s: %d left, %v, want %d", key, left, err, want)
	}
}

// fails takes one, which must fail with this cause.
func (u *user) fails(key, cause string, sent bool) {
	u.t.Helper()
	left, err := u.take(key)
	var down *store.DownError
	if !errors.As(err, &down) || !strings.Contains(down.Cause, cause) || down.Sent != sent {
		u.t.Errorf("%s: %d left, %v (%+v), want %q, sent: %v", key, left, err, down, cause, sent)
	}
}

// recovers takes calls until one is decided, and returns how many are left. It must be so within a time.
func (u *user) recovers(key string, within time.Duration) (left int64) {
	u.t.Helper()
	began := time.Now()
	for {
		left, err := u.take(key)
		if err == nil {
			return left
		}
		if time.Since(began) > within {
			u.t.Fatalf("%s: after %v: %v", key, time.Since(began), err)
		}
		celldtest.Pass(50 * time.Millisecond)
	}
}

func testRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
