package link

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// coverage is which hash slots of a Cluster have a master, as its nodes say.
//
// A Cluster that serves no key is away. One that lacks some hash slots, and serves the rest (cluster-require-full-coverage no), is
// not: all instances see the same, so if they were not ready, nobody would serve the keys that can be served.
type coverage struct {
	mu        sync.Mutex
	now       func() time.Time
	known     bool
	down      bool // no key is served
	uncovered int  // hash slots
	wrong     trouble
	told      bool      // the log has been
	refusedAt time.Time // when a node last refused to tell
	calls     trouble   // no pipeline that was used answers
}

// trouble is a reason that may go away by itself, and since when it holds.
type trouble struct {
	since time.Time // zero: there is none
	why   error
}

func (t *trouble) note(why error, now time.Time) {
	if t.why = why; why == nil {
		t.since = time.Time{}
	} else if t.since.IsZero() {
		t.since = now
	}
}

func (t *trouble) lastsLonger(than time.Duration, now time.Time) bool {
	return !t.since.IsZero() && now.Sub(t.since) > than
}

// A failover takes the Cluster's node timeout, after which the nodes say that a master has failed, and failoverTakes, in which they may
// serve no key. Trouble that is over by then is not logged, and celld stays ready.
const failoverTakes = 3 * time.Second

// refusalLasts is how long nodes are not asked after one has refused to tell.
const refusalLasts = time.Minute

// clusterView is what a node says.
type clusterView struct {
	down      bool
	uncovered int
}

// viewOf reads the answer of CLUSTER INFO. Hash slots whose master is only suspected are covered.
func viewOf(info map[string]string) (clusterView, error) {
	assigned, err := strconv.Atoi(info["cluster_slots_assigned"])
	failed, err2 := strconv.Atoi(info["cluster_slots_fail"])
	return clusterView{info["cluster_state"] != "ok", hashSlots - assigned + failed}, errors.Join(err, err2)
}

// better reports whether one node's view is better than another's. A node that was cut off from the others sees less.
func (v clusterView) better(other clusterView) bool {
	if v.down != other.down {
		return other.down
	}
	return v.uncovered < other.uncovered
}

// lookAtHashSlots asks a node of a Cluster which hash slots have a master. If it says that something is wrong, all are asked.
func (l *Link) lookAtHashSlots(client rueidis.Client) {
	if l.coverage.isRefused() {
		return
	}
	best, err := l.viewFrom(client)
	if Is(Classify(err), causeNoRight) {
		l.coverage.refuse()
		return
	}
	if err != nil || best.down || best.uncovered > 0 {
		nodes := client.Nodes()
		views := make(chan clusterView, len(nodes))
		for _, node := range nodes {
			go func() {
				if v, err := l.viewFrom(node); err == nil {
					views <- v
				} else {
					views <- clusterView{down: true, uncovered: hashSlots + 1}
				}
			}()
		}
		for range nodes {
			if v := <-views; v.uncovered <= hashSlots && (err != nil || v.better(best)) {
				best, err = v, nil
			}
		}
	}
	if err == nil {
		l.noteCoverage(best)
	}
}

func (l *Link) viewFrom(node rueidis.Client) (clusterView, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(l.options.Timeout, watchInterval))
	defer cancel()
	text, err := node.Do(ctx, node.B().ClusterInfo().Build()).ToString()
	if err != nil {
		return clusterView{}, err
	}
	return viewOf(parseInfo(strings.TrimPrefix(text, "txt:"))) // RESP3 says what kind of text it is
}

func (c *coverage) isRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().Sub(c.refusedAt) < refusalLasts
}

func (c *coverage) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusedAt, c.known, c.down, c.wrong = c.now(), false, false, trouble{}
}

// noteCoverage notes what the nodes say, and logs what lasts.
func (l *Link) noteCoverage(v clusterView) {
	c := &l.coverage
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.down, c.uncovered = true, v.down, v.uncovered
	now, began := c.now(), c.wrong.since
	if v.down || v.uncovered > 0 {
		c.wrong.note(fmt.Errorf("the Cluster is down, and %d of its %d slots have no master", v.uncovered, hashSlots), now)
	} else {
		c.wrong.note(nil, now)
	}
	switch lasts := c.wrong.lastsLonger(failoverTakes, now); {
	case lasts && !c.told:
		c.told = true
		l.log.Warn("slots of the Cluster have no master", "slots", v.uncovered, "of", hashSlots, "serves_the_rest", !v.down)
	case c.told && c.wrong.why == nil:
		c.told = false
		l.log.Info("all slots of the Cluster have a master again", "after", now.Sub(began).Round(time.Millisecond))
	}
}

// noteCalls notes why no call is answered, nil if some are.
func (c *coverage) noteCalls(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.note(why, c.now())
}

// away returns why a Cluster serves no key, once that has lasted for longer than a failover; nil if it serves some.
func (c *coverage) away() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch {
	case c.down && c.wrong.lastsLonger(failoverTakes, now):
		return c.wrong.why
	case c.calls.lastsLonger(failoverTakes, now):
		return c.calls.why
	}
	return nil
}

// Uncovered is how many hash slots of a Cluster have no master. known is false if no node tells.
func (l *Link) Uncovered() (n int, known bool) {
	c := &l.coverage
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uncovered, c.known && l.cluster.Load()
}
