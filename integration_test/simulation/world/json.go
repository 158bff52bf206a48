package world

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"celld/integration_test/simulation/check"
	"celld/integration_test/simulation/network"
)

// Clients ask by JSON, too. Their calls and answers are those of commands in other words, so the same checkers look at them.

// byJSON reports whether a call can be asked so, and what is sent where.
func (a *asked) byJSON() (path string, body []byte) {
	words := strings.Fields(a.Text)
	if words[0] == "EVAL" || a.exec {
		return "", nil
	}
	fields := map[string]any{"key": a.Key}
	switch a.Kind {
	case check.Release, check.Renew:
		path, fields["lease"] = "/v1/release", a.Lease
		if a.Kind == check.Renew {
			path, fields["ms"] = "/v1/renew", a.WaitNS/1e6
		}
	case check.Take, check.Peek, check.Force, check.Reserve, check.Acquire:
		if a.Bound { // to a connection
			return "", nil
		}
		path = "/v1/take"
		rest := slices.IndexFunc(words, func(word string) bool {
			return slices.Contains([]string{"COST", "WAIT", "RESERVE", "BIND", "ID"}, word)
		})
		if rest < 0 {
			rest = len(words)
		}
		fields["limits"] = words[2:rest]
		costs := map[string]int64{}
		for i := rest; i < len(words); i++ {
			switch words[i] {
			case "COST":
				if i+2 < len(words) && words[i+2] == "OF" {
					costs[words[i+3]] = number(words[i+1])
					i += 2
				} else {
					fields["cost"] = number(words[i+1])
				}
				i++
			case "WAIT", "RESERVE":
				fields["mode"], fields["max_ms"] = strings.ToLower(words[i]), number(words[i+1])
				i++
			case "ID":
				fields["id"] = words[i+1]
				i++
			default:
				fields["mode"] = strings.ToLower(words[i])
			}
		}
		if len(costs) > 0 {
			fields["costs"] = costs
		}
	default:
		return "", nil
	}
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return path, body
}

// asksByJSON asks each of the calls that can be asked so by itself, and returns the others.
func (c *client) asksByJSON(calls []asked) (others []asked) {
	for _, a := range calls {
		m := c.w.all[c.rnd.IntN(len(c.w.all))]
		path, body := a.byJSON()
		conn, err := (*network.Conn)(nil), error(nil)
		if path != "" && a.plain == "" {
			conn, err = c.w.network.Dial(c.addr, m.http())
		}
		if conn == nil || err != nil { // nobody listens, so nothing was asked
			others = append(others, a)
			continue
		}
		a.looks, a.without, a.Server = m.looks(), m.without(), m.number
		a.FromNS, _ = c.w.nowNS()
		a.Began = c.w.event(c.name, "posts %s to %s: %s", path, m.addr, body)
		began := c.w.since()
		status, text, err := post(conn, c.w.token(&c.caller)+m.http(), path, body)
		conn.Reset()
		conn.AwaitPeer(longest / 4)
		switch a.Ended = c.w.event(c.name, "gets %d: %s, %v", status, text, err); {
		case err != nil:
		case status == http.StatusUnauthorized && c.w.plan.has("secrets"):
			others = append(others, a)
			continue
		case status == http.StatusServiceUnavailable: // of which some may have been counted
			a.Error, a.Maybe = text, true
		case status != http.StatusOK || !a.reads(text):
			c.w.wrong("%s: %s %s was answered %d: %s", c.name, path, body, status, text)
		}
		if took := c.w.since() - began; took > c.w.plan.patience()+time.Duration(a.WaitNS)+2*c.w.plan.timeout {
			c.w.wrong("%s: %s took %s", c.name, a.Text, took)
		}
		a.Times = m.between(a.looks, m.looks())
		_, a.ToNS = c.w.nowNS()
		c.w.count("asked by JSON")
		c.mayBeWithout(&a, m)
		c.note(&a)
	}
	return others
}

// post asks by a connection, and closes it.
func post(conn net.Conn, to, path string, body []byte) (status int, text string, err error) {
	client := browser(func() (net.Conn, error) { return conn, nil })
	answer, err := client.Post("http://"+to+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(read)), err
}

// reads reads an answer as that of the command.
func (a *asked) reads(text string) bool {
	var v struct {
		Allowed, Never   bool
		Limit, Remaining int64
		RetryAfter       *int64 `json:"retry_after_ms"`
		ResetAfter       int64  `json:"reset_after_ms"`
		Granted          int64
		Wait             int64 `json:"wait_ms"`
		Lease            *int64
		Done             *bool // of CL.RELEASE and CL.RENEW
	}
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	if v.Done != nil {
		a.Answer = []int64{0}
		if *v.Done {
			a.Answer[0] = 1
		}
		return true
	}
	limited, retry := int64(1), int64(-1)
	if v.Allowed {
		limited = 0
	}
	if v.RetryAfter != nil {
		retry = *v.RetryAfter
	}
	a.Answer = []int64{limited, v.Limit, v.Remaining, retry, v.ResetAfter, v.Granted, v.Wait}
	if v.Lease != nil {
		a.Answer = append(a.Answer, *v.Lease)
	}
	return v.Allowed || v.Never == (v.RetryAfter == nil)
}
