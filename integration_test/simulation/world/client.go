package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"celld/integration_test/simulation/check"
	"celld/integration_test/simulation/network"
	"celld/resp/wire"
)

// client asks, reads the answers, and connects again when its connection has ended.
type client struct {
	w      *world
	number int
	rnd    *rand.Rand
	conn   *network.Conn
	of     *machine     // that it is connected to
	holds  []check.Call // leases, which it may release
	reader *bufio.Reader
}

func newClient(w *world, number int) *client {
	return &client{w: w, number: number, rnd: w.plan.chance("client " + strconv.Itoa(number))}
}

func (c *client) name() string { return fmt.Sprintf("client %d", c.number) }

func (c *client) run() {
	for left := c.w.plan.calls; left > 0; {
		if c.w.plan.think > 0 {
			time.Sleep(time.Duration(c.rnd.Int64N(int64(c.w.plan.think))))
		}
		n := min(left, 1+c.rnd.IntN(c.w.plan.pipeline))
		left -= n
		calls, raw := make([]asked, n), ""
		for i := range calls {
			calls[i] = c.draw()
			raw += calls[i].raw
		}
		c.ask(calls, raw)
	}
	if c.conn != nil {
		c.conn.Close()
	}
}

// asked is a call, and where the clock of the server was.
type asked struct {
	check.Call
	raw   string
	looks int
	plain string // the answer that it must have; "": it is a call of a limit
}

func (c *client) draw() (a asked) {
	if c.rnd.IntN(20) == 0 {
		a.plain = fmt.Sprintf("token-%d-%d", c.number, c.rnd.IntN(1e6))
		a.raw = string(wire.AppendCommand(nil, "ECHO", a.plain))
		a.Text = "ECHO " + a.plain
		return a
	}
	k := c.w.plan.keys[c.rnd.IntN(len(c.w.plan.keys))]
	a.Client, a.Key, a.Cost, a.Bounded = c.number, k.name, 1, k.waits || c.w.fleet != nil && !k.held
	if c.rnd.IntN(5) == 0 {
		a.Cost = c.rnd.Int64N(4)
	}
	var words []string
	switch {
	case c.rnd.IntN(30) == 0 && c.w.fleet == nil && !k.held && !k.waits:
		a.Kind, a.Limit, words = check.Del, k.limit, []string{"DEL", k.name}
	case k.text == "":
		a.Kind, a.Burst = check.Throttle, k.burst
		words = []string{"CL.THROTTLE", k.name, fmt.Sprint(k.burst[0]), fmt.Sprint(k.burst[1]), fmt.Sprint(k.burst[2]), fmt.Sprint(a.Cost)}
	default:
		a.Kind, a.Limit, a.Cost = check.Take, k.limit, max(1, a.Cost)
		words = []string{"CL.TAKE", k.name, k.text, "COST", fmt.Sprint(a.Cost)}
		switch {
		case k.held:
			return c.drawLease(a, k)
		case k.waits && c.rnd.IntN(2) == 0:
			a.Waits, words = true, append(words, "WAIT", fmt.Sprint(c.rnd.IntN(3000)))
		case c.rnd.IntN(10) == 0:
			a.Kind, words = check.Peek, append(words, "PEEK")
		}
	}
	a.raw, a.Text = string(wire.AppendCommand(nil, words...)), strings.Join(words, " ")
	return a
}

// drawLease takes a lease, or gives one back.
func (c *client) drawLease(a asked, k key) asked {
	words := []string{"CL.TAKE", k.name, k.text}
	a.Kind, a.Cost = check.Acquire, 1
	mine := slices.IndexFunc(c.holds, func(l check.Call) bool { return l.Key == k.name })
	switch {
	case mine >= 0 && c.rnd.IntN(2) == 0:
		a.Kind, a.Lease = check.Release, c.holds[mine].Answer[7]
		c.holds = slices.Delete(c.holds, mine, mine+1)
		words = []string{"CL.RELEASE", k.name, fmt.Sprint(a.Lease)}
	case c.rnd.IntN(3) == 0:
		words = append(words, "WAIT", fmt.Sprint(c.rnd.IntN(1000)))
	}
	a.raw, a.Text = string(wire.AppendCommand(nil, words...)), strings.Join(words, " ")
	return a
}

// ask sends calls together, and reads their answers.
func (c *client) ask(calls []asked, raw string) {
	for c.conn == nil {
		c.of = c.w.all[c.rnd.IntN(len(c.w.all))]
		conn, err := c.w.network.Dial(fmt.Sprintf("127.0.1.%d:0", c.number+1), c.of.serves())
		if err == nil {
			c.conn, c.reader = conn, bufio.NewReader(conn)
			break
		}
		time.Sleep(time.Duration(1+c.rnd.IntN(200)) * time.Millisecond)
		if c.w.since() > longest/2 {
			c.w.wrong("%s: nobody serves: %v", c.name(), err)
			return
		}
	}
	for i := range calls {
		calls[i].looks = c.of.looks()
		calls[i].FromNS, _ = c.w.nowNS()
		calls[i].Began = c.w.event(c.name(), "asks %s", calls[i].Text)
	}
	conn := c.conn
	_ = conn.SetDeadline(time.Now().Add(longest / 4))
	_, err := io.WriteString(conn, raw)
	for i := range calls {
		a := &calls[i]
		if err == nil {
			err = c.read(a)
		}
		if err != nil {
			a.Ended = c.w.event(c.name(), "has no answer to %s: %v", a.Text, err)
			conn.Reset()
			c.conn = nil
		}
		a.Times = c.of.between(a.looks, c.of.looks())
		_, a.ToNS = c.w.nowNS()
		if a.Kind == check.Acquire && len(a.Answer) == 8 && a.Answer[0] == 0 {
			c.holds = append(c.holds, a.Call)
		}
		if a.plain == "" {
			c.w.mu.Lock()
			c.w.history.Calls = append(c.w.history.Calls, a.Call)
			c.w.mu.Unlock()
		}
	}
}

// read reads one answer.
func (c *client) read(a *asked) error {
	reply, err := wire.ReadReply(c.reader)
	if err != nil {
		return err
	}
	text := string(reply.Text)
	switch reply.Kind {
	case '-':
		a.Error = text
	case ':':
		n, _ := strconv.ParseInt(text, 10, 64)
		a.Answer = []int64{n}
	case '*':
		for range reply.N {
			one, err := wire.ReadReply(c.reader)
			if err != nil {
				return err
			}
			n, wrong := strconv.ParseInt(string(one.Text), 10, 64)
			if one.Kind != ':' || wrong != nil {
				c.w.wrong("%s: %s was answered %c%s", c.name(), a.Text, one.Kind, one.Text)
			}
			a.Answer = append(a.Answer, n)
		}
	}
	a.Ended = c.w.event(c.name(), "is answered %v%s to %s", a.Answer, a.Error, a.Text)
	if a.plain != "" && text != a.plain {
		c.w.wrong("%s: %s was answered %c%s", c.name(), a.Text, reply.Kind, text)
	}
	if a.plain == "" && a.Error == "" && reply.Kind != ':' && reply.Kind != '*' {
		c.w.wrong("%s: %s was answered %c%s", c.name(), a.Text, reply.Kind, text)
	}
	if a.Error != "" {
		c.w.count("error " + strings.SplitN(a.Error, " ", 2)[0])
		// The first calls that meet a full disk may have been counted.
		a.Maybe = strings.HasPrefix(a.Error, "MISCONF") || strings.Contains(a.Error, "may have been counted")
		switch code, _, _ := strings.Cut(a.Error, " "); {
		case a.Maybe, code == "LOADING", c.w.fleet != nil && (code == "STOREDOWN" || code == "OOM"):
			return nil
		}
		c.w.wrong("%s: %s was answered -%s", c.name(), a.Text, a.Error)
	}
	return nil
}
