package world

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"celld/cell"
	"celld/integration_test/simulation/check"
	"celld/resp/wire"
)

// client takes from limits, and notes all that it was answered.
type client struct {
	caller
	number  int
	holds   []check.Call // leases, which it may release or renew
	bound   []int        // those of history that end with the connection
	aliveNS int64        // when the connection was there for the last time, as far as the client knows
	repeats *asked       // a call with an ID that had no answer
	ids     int          // how many it has used
	costs   *rand.Rand   // draws what it takes from limits with names
	doors   *rand.Rand   // draws whether it asks by JSON
	books   *rand.Rand   // draws whether it reserves
	asks    *rand.Rand   // draws what it asks, and the caller's how: so calls that are left out do not change the others
	half    bool         // it sends nothing more by its connection
}

func newClient(w *world, number int) *client {
	name := fmt.Sprintf("client %d", number)
	return &client{caller: w.caller(name, number+1), number: number, asks: w.plan.chance(name + " asks"),
		costs: w.plan.chance(name + " costs"), doors: w.plan.chance(name + " doors"), books: w.plan.chance(name + " books")}
}

func (c *client) run() {
	c.mayLeaveOut(c.w.plan.calls)
	for drawn, left := 0, c.w.plan.calls; left > 0; {
		if c.w.plan.think > 0 {
			time.Sleep(time.Duration(c.asks.Int64N(int64(c.w.plan.think))))
		}
		n, bursts := 1+c.asks.IntN(c.w.plan.pipeline), c.w.plan.bursts
		switch {
		case c.w.plan.storms:
			n += c.storm(bursts)
		case bursts > 0 && c.asks.IntN(20) == 0:
			time.Sleep(bursts - c.w.since()%bursts)
		}
		n = min(left, n)
		left -= n
		var calls []asked
		for range n {
			if a := c.draw(); !c.w.plan.leavesOut(a.Key) && !c.leavesOut(drawn) {
				calls = append(calls, a)
			}
			drawn++
		}
		if len(calls) > 0 {
			c.ask(calls)
		}
	}
	if c.conn != nil {
		c.leave()
		c.conn.Close()
	}
}

// storm waits for the next storm, and returns how many calls more than else come then. Some come soon after its beginning. The first client
// makes its instance hold some units before, while the bucket is full, and may not use them.
func (c *client) storm(every time.Duration) (more int) {
	early := 300*time.Millisecond + time.Duration(c.asks.Int64N(int64(130*time.Millisecond)))
	if left := every - c.w.since()%every; left < early {
		time.Sleep(left)
	}
	if c.number > 0 {
		time.Sleep(every - c.w.since()%every + time.Duration(c.asks.IntN(2)*c.asks.IntN(400))*time.Millisecond)
		return 10 + c.asks.IntN(20)
	}
	time.Sleep(every - c.w.since()%every - early)
	for _, cost := range []int64{6, 1} { // the second takes units for as much as the first has cost
		a := c.on(c.w.plan.keys[0])
		a.Kind, a.Cost = check.Take, cost
		a.says(a.takes(c.w.plan.keys[0])...)
		c.ask([]asked{a})
	}
	time.Sleep(early)
	return oneOf(c.asks, 0, 10+c.asks.IntN(20))
}

// asked is a call, and where the clock of the server was.
type asked struct {
	check.Call
	raw     []byte
	looks   int
	without [2]int64 // see machine.without, before it was asked
	plain   string   // the answer that it must have; "": it is a call of a limit
	exec    bool     // it is sent in a transaction
}

func (a *asked) says(words ...string) {
	a.raw, a.Text = wire.AppendCommand(nil, words...), strings.Join(words, " ")
}

func (c *client) draw() (a asked) {
	if c.repeats != nil {
		a, c.repeats = *c.repeats, nil
		return a
	}
	if c.asks.IntN(20) == 0 {
		a.plain = fmt.Sprintf("token-%d-%d", c.number, c.asks.IntN(1e6))
		a.says("ECHO", a.plain)
		return a
	}
	k := c.w.plan.keys[c.asks.IntN(len(c.w.plan.keys))]
	a = c.on(k)
	if c.asks.IntN(5) == 0 {
		a.Cost = c.asks.Int64N(4)
	}
	switch {
	case c.asks.IntN(30) == 0 && (!c.w.plan.bounded() || c.w.plan.deletes) && !k.held && !k.waits:
		a.Kind = check.Del
		a.says("DEL", k.name)
	case k.text == "":
		a.throttles()
	case k.held:
		c.drawLease(&a, k)
	default:
		c.drawTake(&a, k)
	}
	if a.Waits || a.Bound {
		return a
	}
	switch c.doors.IntN(16) {
	case 0, 1:
		a.inScript()
		c.w.count("asked by script")
	case 2:
		a.exec = true
		a.raw = slices.Concat(wire.AppendCommand(nil, "MULTI"), a.raw, wire.AppendCommand(nil, "EXEC"))
		c.w.count("asked by EXEC")
	}
	return a
}

// inScript lets a script call the command, whose answer is the same.
func (a *asked) inScript() {
	words := strings.Fields(a.Text)
	a.says(append([]string{"EVAL", "return redis.call(ARGV[1],KEYS[1],unpack(ARGV,2))", "1", a.Key, words[0]}, words[2:]...)...)
}

// on is a call on a key.
func (c *client) on(k key) (a asked) {
	a.Client, a.Key, a.Cost, a.Limit, a.Others, a.Burst = c.number, k.name, 1, k.limit, k.more, k.burst
	a.Bounded = k.waits || c.w.plan.bounded() && !k.held
	return a
}

func (a *asked) throttles() {
	a.Kind = check.Throttle
	a.says("CL.THROTTLE", a.Key, fmt.Sprint(a.Burst[0]), fmt.Sprint(a.Burst[1]), fmt.Sprint(a.Burst[2]), fmt.Sprint(a.Cost))
}

// takes are the words of a call, before its options.
func (a *asked) takes(k key) []string {
	return append(append([]string{"CL.TAKE", k.name}, strings.Fields(k.text)...), "COST", fmt.Sprint(a.Cost))
}

// looks looks at each key. So whatever was forgotten is seen, also where nobody calls any more.
func (c *client) looks() {
	for _, k := range c.w.plan.keys {
		a := c.on(k)
		switch {
		case k.held, c.w.plan.leavesOut(k.name):
			continue
		case k.text == "":
			a.Cost = 0
			a.throttles()
		default:
			a.Kind = check.Peek
			a.says(append(a.takes(k), "PEEK")...)
		}
		c.ask([]asked{a})
	}
}

// drawTake takes from a limit, waits for it, or looks at it.
func (c *client) drawTake(a *asked, k key) {
	a.Kind, a.Cost = check.Take, max(1, a.Cost)
	words := a.takes(k)
	if k.named {
		words = append(words, c.drawCosts(a)...)
	}
	switch {
	case k.waits && c.asks.IntN(2) == 0:
		words = append(words, a.waits(c.asks.IntN(3000))...)
	case c.asks.IntN(10) == 0:
		a.Kind, words = check.Peek, append(words, "PEEK")
	case !a.Bounded && c.asks.IntN(10) == 0:
		a.Kind, words = check.Force, append(words, "FORCE")
	case len(k.more) == 0 && !k.named && !k.waits && !c.w.plan.storms && k.limit.Bookable() && c.books.IntN(6) == 0:
		ms := c.books.IntN(5000)
		a.Kind, a.WaitNS, words = check.Reserve, int64(ms)*1e6, append(words, "RESERVE", strconv.Itoa(ms))
		c.w.count("asked to reserve")
	}
	a.says(words...)
}

// drawCosts gives some names costs of their own, and returns the options.
func (c *client) drawCosts(a *asked) (words []string) {
	costs := map[string]int64{}
	for _, name := range []string{"a", "b"} {
		if costs[name] = c.costs.Int64N(7) - 2; costs[name] < 0 {
			costs[name] = -1
		}
	}
	for _, l := range append([]cell.Limit{a.Limit}, a.Others...) {
		name, cost := l.Name.String(), int64(-1)
		if name != "" {
			cost = costs[name]
		}
		if a.Costs = append(a.Costs, cost); cost >= 0 && !slices.Contains(words, name) {
			words = append(words, "COST", fmt.Sprint(cost), "OF", name)
		}
	}
	return words
}

// waits makes a call wait, and returns its option.
func (a *asked) waits(ms int) []string {
	a.Waits, a.WaitNS = true, int64(ms)*1e6
	return []string{"WAIT", strconv.Itoa(ms)}
}

// drawLease takes a lease, renews it, or gives it back.
func (c *client) drawLease(a *asked, k key) {
	a.Kind, a.Cost = check.Acquire, 1
	words := []string{"CL.TAKE", k.name, k.text}
	mine := slices.IndexFunc(c.holds, func(l check.Call) bool { return l.Key == k.name })
	switch {
	case mine >= 0 && c.asks.IntN(6) == 0:
		a.Kind, a.Lease, a.WaitNS = check.Renew, c.holds[mine].Answer[7], 1e6*(1+c.asks.Int64N(2000))
		a.says("CL.RENEW", k.name, fmt.Sprint(a.Lease), fmt.Sprint(a.WaitNS/1e6))
		return
	case mine >= 0 && c.asks.IntN(2) == 0:
		a.Kind, a.Lease = check.Release, c.holds[mine].Answer[7]
		if c.asks.IntN(10) > 0 { // else it may be released again
			c.holds = slices.Delete(c.holds, mine, mine+1)
		}
		a.says("CL.RELEASE", k.name, fmt.Sprint(a.Lease))
		return
	case c.asks.IntN(3) == 0:
		words = append(words, a.waits(c.asks.IntN(1000))...)
	}
	if c.asks.IntN(3) == 0 || c.w.plan.binds {
		a.Bound, words = true, append(words, "BIND")
	}
	if c.asks.IntN(3) == 0 {
		c.ids++
		a.ID = fmt.Sprintf("%d-%d", c.number, c.ids)
		words = append(words, "ID", a.ID)
	}
	a.says(words...)
}

// ask sends calls together, and reads their answers.
func (c *client) ask(calls []asked) {
	if c.doors.IntN(3) == 0 && c.w.plan.has("http") {
		calls = c.asksByJSON(calls)
	}
	if len(calls) == 0 || !c.connect() {
		return
	}
	var raw []byte
	for i := range calls {
		raw = append(raw, calls[i].raw...)
		calls[i].looks, calls[i].without = c.of.looks(), c.of.without()
		calls[i].FromNS, _ = c.w.nowNS()
		calls[i].Began = c.w.event(c.name, "asks %s", calls[i].Text)
		calls[i].First, calls[i].Server = i == 0, c.of.number
	}
	patience := c.w.plan.patience()
	err := c.send(raw, calls, &patience)
	began := c.w.since()
	for i := range calls {
		a := &calls[i]
		if err == nil {
			err = c.read(a)
		}
		if err != nil {
			c.leave()
			c.hangUp()
			a.Ended = c.w.event(c.name, "has no answer to %s: %v", a.Text, err)
		}
		if patience += time.Duration(a.WaitNS) + c.w.plan.timeout; a.Waits {
			patience += c.w.plan.timeout // until it is looked at
		}
		if took := c.w.since() - began; took > patience {
			c.w.wrong("%s: %s took %s", c.name, a.Text, took)
		}
		a.Times = c.of.between(a.looks, c.of.looks())
		_, a.ToNS = c.w.nowNS()
		c.mayBeWithout(a, c.of)
		c.note(a)
	}
	if err == nil {
		c.aliveNS = calls[0].FromNS // when the first answer came it was there still
	}
	if c.half && err == nil {
		if value, err := readValue(c.reader); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
			c.w.wrong("%s has closed its half, and after all answers there is %v, %v", c.name, value, err)
		}
		c.leave()
		c.hangUp()
	}
	c.half = false
}

// send sends calls at once, or in two parts, and may be slow to read what is answered, or send nothing more.
func (c *client) send(raw []byte, calls []asked, patience *time.Duration) error {
	if !c.w.plan.odd || c.rnd.IntN(10) > 0 {
		return c.write(raw)
	}
	for i := range calls {
		calls[i].First = false // for nobody knows when they arrive, or are answered
	}
	pause := time.Duration(c.rnd.Int64N(int64(500 * time.Millisecond)))
	*patience += pause
	switch c.rnd.IntN(3) {
	case 0:
		c.w.count("calls in two parts")
		cut := c.rnd.IntN(len(raw))
		if err := c.write(raw[:cut]); err != nil {
			return err
		}
		time.Sleep(pause)
		return c.write(raw[cut:])
	case 1:
		c.w.count("slow to read")
		err := c.write(raw)
		time.Sleep(pause)
		return err
	}
	err := c.write(raw)
	if !slices.ContainsFunc(calls, func(a asked) bool { return a.Waits }) { // which ends with the half that is closed
		c.w.count("half closed")
		c.half = true
		_ = c.conn.CloseWrite()
	}
	return err
}

// mayBeWithout makes an answer none that the machine may have given without the engine: so the call may have been counted, or not. The mode
// of an outage allows or denies all, so the other answer is the engine's.
func (c *client) mayBeWithout(a *asked, m *machine) {
	mode, _ := c.w.plan.outageModes()
	if mode == "" || a.Answer == nil || a.without == m.without() {
		return
	}
	if denied := a.Answer[0] == 1; denied && mode == "allow" || !denied && mode == "deny" {
		return
	}
	c.w.count("may be without the engine")
	a.Answer, a.Error, a.Maybe = nil, "it may have been answered without the engine", true
}

// note puts a call into the history.
func (c *client) note(a *asked) {
	if a.plain != "" {
		return
	}
	c.w.mu.Lock()
	c.w.history.Calls = append(c.w.history.Calls, a.Call)
	number := len(c.w.history.Calls) - 1
	c.w.mu.Unlock()
	switch {
	case a.Kind != check.Acquire:
	case a.Granted():
		c.holds = append(c.holds, a.Call)
		if a.Bound {
			c.bound = append(c.bound, number)
		}
	case a.Answer == nil && a.ID != "" && c.rnd.IntN(4) > 0:
		again := *a
		again.Call.Error, again.Maybe = "", false
		c.repeats = &again
	}
}

// leave notes that the leases of the connection end.
func (c *client) leave() {
	_, now := c.w.nowNS()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, number := range c.bound {
		call := &c.w.history.Calls[number]
		call.BoundNS = max(c.aliveNS, 1)
		if c.w.fleet == nil || c.w.plan.orderly() { // else a celld that is killed leaves them on the engine, as one without it
			call.UnboundNS = now
		}
		c.holds = slices.DeleteFunc(c.holds, func(l check.Call) bool { return l.Key == call.Key && l.Answer[7] == call.Answer[7] })
	}
	c.bound = nil
}

// read reads one answer.
func (c *client) read(a *asked) error {
	value, err := readValue(c.reader)
	if err == nil && a.exec {
		value, err = c.readExec(value)
	}
	if err != nil {
		return err
	}
	expected := false
	switch value := value.(type) {
	case failure:
		a.Error = string(value)
	case int64:
		a.Answer, expected = []int64{value}, a.plain == ""
	case string:
		expected = value == a.plain
	case []any:
		expected = a.plain == ""
		for _, one := range value {
			n, is := one.(int64)
			a.Answer, expected = append(a.Answer, n), expected && is
		}
	}
	a.Ended = c.w.event(c.name, "is answered %v to %s", value, a.Text)
	if a.Error != "" {
		return c.refused(a)
	}
	if !expected {
		c.w.wrong("%s: %s was answered %v", c.name, a.Text, value)
	}
	return nil
}

// readExec reads on after the answer to MULTI, and returns that to the command in the transaction.
func (c *client) readExec(multi any) (any, error) {
	queued, err := readValue(c.reader)
	if err != nil {
		return nil, err
	}
	exec, err := readValue(c.reader)
	if multi != "OK" || queued != "QUEUED" { // then the command was by itself, or was refused
		return queued, err
	}
	if list, is := exec.([]any); is && len(list) == 1 {
		return list[0], err
	}
	return exec, err
}

// refused says what an error means.
func (c *client) refused(a *asked) error {
	code, _, _ := strings.Cut(a.Error, " ")
	c.w.count("error " + code)
	// The first calls that meet a full disk may have been counted.
	a.Maybe = code == "MISCONF" || strings.Contains(a.Error, "may have been counted")
	if !a.Maybe && !c.w.plan.mayFail(code) {
		c.w.wrong("%s: %s was answered -%s", c.name, a.Text, a.Error)
	}
	return nil
}

// mayFail reports whether docs/ has it that a call may get this error, which counts nothing.
func (p *plan) mayFail(code string) bool {
	switch code {
	case "LOADING":
		return true
	case "STOREDOWN":
		return p.engine != noEngine
	case "OOM":
		return p.engine != noEngine || p.has("crowd")
	case "BUSY":
		return p.setting("lua-time-limit") != ""
	}
	return false
}
