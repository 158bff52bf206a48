package link

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"celld/internal/celldtest"
)

// lines is a log that tests read while it is written.
type lines struct{ celldtest.LogBuffer }

func (l *lines) log() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// answerTo sends a command and waits for its answer.
func (s *Link) answerTo(r *Request) (answer rueidis.RedisMessage, err error) {
	done := make(chan struct{})
	r.Done = func(m rueidis.RedisMessage, e error) { answer, err = m, e; close(done) }
	s.Send(r)
	<-done
	return answer, err
}

func get(readOnly bool, patience time.Duration) *Request {
	return &Request{Keys: []string{"k"}, Args: []string{"GET"}, ReadOnly: readOnly, Deadline: time.Now().Add(patience)}
}

// infoOfCelld is what an engine answers that is a celld.
func infoOfCelld(command string) string {
	if strings.HasPrefix(command, "INFO") {
		return "$19\r\ncelld_version:0.1.0\r\n"
	}
	return ""
}

// What no waiting mends is an error of Open, without the password.
func TestOpenRefuses(t *testing.T) {
	for reply, want := range map[string]string{
		"HELLO -WRONGPASS invalid username-password pair or user is disabled.":     "refuses the user or password",
		"HELLO -NOAUTH HELLO must be called with the client already authenticated": "wants a password",
		"SELECT -ERR DB index is out of range":                                     "databases",
		"SELECT -ERR SELECT is not allowed in cluster mode":                        "only database 0",
	} {
		command, line, _ := strings.Cut(reply, " ")
		fake := celldtest.NewAilingAt(t, "127.0.0.1:0", func(got string) string {
			if strings.HasPrefix(got, command) {
				return line + "\r\n"
			}
			return ""
		})
		err := newLink(Options{URL: "redis://me:s3cret@" + fake.Socket + "/3"}).Connect()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", reply, err, want)
		}
	}
	fake := celldtest.NewAilingAt(t, "127.0.0.1:0", func(string) string { return "" })
	celld := celldtest.NewAilingAt(t, "127.0.0.1:0", infoOfCelld)
	for url, want := range map[string]string{
		"redis://" + fake.Socket + "," + fake.Socket: "are for a Cluster, and it is not one",
		"redis://" + fake.Socket + "?master=m":       "is for Sentinels, and it is not one",
		"rediss://" + fake.Socket:                    "does not speak TLS",
		"redis://:s3cret":                            "port",
		"redis://" + celld.Socket:                    "it is a celld",
	} {
		if err := newLink(Options{URL: url}).Connect(); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}

// An engine that is away at the start is found when it comes, and its password is in no line of the log.
func TestEngineComesLater(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	var log lines
	s := openLink(t, Options{URL: "redis://:s3cret@" + addr, Log: log.log()})
	if err := s.Away(); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("away: %v", err)
	}
	var d *DownError
	if _, err := s.answerTo(get(true, time.Second)); !errors.As(err, &d) || d.Sent {
		t.Errorf("without an engine: %v", err)
	}
	fake := celldtest.NewAilingAt(t, addr, func(command string) string {
		switch {
		case strings.HasPrefix(command, "HELLO"):
			return "-ERR odd command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret'\r\n"
		}
		return ""
	})
	eventually(t, "the log tells what it answers", func() bool { return strings.Contains(log.String(), "odd command") })
	fake.AnswersBy(infoOfCelld)
	eventually(t, "it is no engine", func() bool { return strings.Contains(s.Away().Error(), "it is a celld") })
	fake.AnswersBy(func(string) string { return "" })
	eventually(t, "connected", func() bool { return s.Away() == nil })
	if fake.Asks("HELLO 3 AUTH default s3cret SETNAME celld") == 0 {
		t.Errorf("received %q", fake.Commands())
	}
	fake.Close()
	eventually(t, "away again", func() bool { return s.Away() != nil })
	fake = celldtest.NewAilingAt(t, addr, func(string) string { return "" })
	eventually(t, "back", func() bool { return s.Away() == nil && fake.Asks("PING") > 0 })
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log has the password:\n%s", log.String())
	}
}

// What was sent is not sent again: not when the connection breaks, the answer is late, or the engine is loading.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, answer string
		sent         bool
	}{
		{"the connection breaks", "close", true},
		{"no answer", "none", true},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", false},
		{"try again", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", false},
	} {
		for _, readOnly := range []bool{false, true} {
			fake := celldtest.NewAilingAt(t, "127.0.0.1:0", func(command string) string {
				if command == "GET k" {
					return test.answer
				}
				return ""
			})
			s := openLink(t, Options{URL: "redis://" + fake.Socket})
			var d *DownError
			if _, err := s.answerTo(get(readOnly, 300*time.Millisecond)); !errors.As(err, &d) || d.Sent != test.sent {
				t.Errorf("%s: %v", test.name, err)
			}
			fake.AnswersBy(func(command string) string { return map[bool]string{true: "$1\r\n1\r\n"}[command == "GET k"] })
			eventually(t, "it answers again", func() bool {
				_, err := s.answerTo(&Request{Keys: []string{"k"}, Args: []string{"GET", "more"}, Deadline: time.Now().Add(time.Second)})
				return !errors.As(err, &d)
			})
			if n := fake.Asks("GET k") - fake.Asks("GET k more"); n != 1 {
				t.Errorf("%s: sent %d times", test.name, n)
			}
		}
	}
}

// MOVED, ASK and NOSCRIPT say that nothing was done: the call goes on, once, to where it should.
func TestRedirections(t *testing.T) {
	var first, second *celldtest.Ailing
	slots := func() string {
		host, port, _ := net.SplitHostPort(first.Socket)
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n" + host + "\r\n:" + port + "\r\n$1\r\na\r\n"
	}
	answer := func(command string) string {
		switch {
		case command == "CLUSTER SLOTS":
			return slots()
		case command == "GET moved":
			return "-MOVED 1 " + second.Socket + "\r\n"
		case command == "GET asked":
			return "-ASK 1 " + second.Socket + "\r\n"
		case strings.HasPrefix(command, "EVALSHA"):
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		case strings.HasPrefix(command, "EVAL "):
			return ":7\r\n"
		}
		return ""
	}
	second = celldtest.NewAilingAt(t, "127.0.0.1:0", func(command string) string {
		switch command {
		case "CLUSTER SLOTS":
			return slots()
		case "ASKING":
			return "+OK\r\n"
		case "GET moved", "GET asked":
			return "$2\r\nhi\r\n"
		}
		return ""
	})
	first = celldtest.NewAilingAt(t, "127.0.0.1:0", func(command string) string { return answer(command) })
	s := openLink(t, Options{URL: "redis://" + first.Socket})
	if !s.Cluster() {
		t.Error("one address of a Cluster is taken for a single engine")
	}
	for _, key := range []string{"moved", "asked"} {
		m, err := s.answerTo(&Request{Keys: []string{key}, Args: []string{"GET"}, Deadline: time.Now().Add(time.Minute)})
		if text, _ := m.ToString(); err != nil || text != "hi" {
			t.Errorf("%s: %v, %v", key, m, err)
		}
		if first.Asks("GET "+key) != 1 || second.Asks("GET "+key) != 1 {
			t.Errorf("%s: %d and %d times", key, first.Asks("GET "+key), second.Asks("GET "+key))
		}
	}
	if second.Asks("ASKING") != 1 {
		t.Errorf("ASKING %d times", second.Asks("ASKING"))
	}
	m, err := s.answerTo(&Request{Script: &Script{text: "return 7", Digest: "d"}, Keys: []string{"k"},
		Deadline: time.Now().Add(time.Minute)})
	if n, _ := m.ToInt64(); err != nil || n != 7 || first.Asks("EVALSHA d 1 k") != 1 || first.Asks("EVAL return 7 1 k") != 1 {
		t.Errorf("the script: %v, %v, %q", m, err, first.Commands())
	}
}

// A password that the engine quotes is kept out of the reason. One that is part of another word changes nothing.
func TestReasonsHaveNoPassword(t *testing.T) {
	const list = "unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, "
	for password, want := range map[string]string{
		"s3cret": list + "`(secret)`, ", "p": list + "`(secret)`, ", "engine": list + "`(secret)`, ", "": list + "``, ",
	} {
		s := newLink(Options{Password: password})
		if got := s.reason(errors.New(list + "`" + password + "`, ")); got != want {
			t.Errorf("%q: %s", password, got)
		}
		lacks := "the engine's user lacks a permission: no permissions to access a key"
		if got := s.reason(&DownError{Cause: lacks}); got != lacks {
			t.Errorf("%q: %s", password, got)
		}
	}
}

// A node that takes connections and says nothing is told from one that refuses them. With TLS it may be one that does not speak it.
func TestReasonOfSilence(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h":  "the engine cannot be reached: it has not answered in time",
		"rediss://h": "the engine cannot be reached: it has not answered in time, and may not speak TLS",
	} {
		s := newLink(Options{URL: url})
		s.address, _ = ParseURL(url)
		if got := s.reason(&dialError{context.DeadlineExceeded}); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
}
