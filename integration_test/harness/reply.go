package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// CopyReply moves one reply of RESP2 or RESP3, with all that is nested in it, from r to raw.
func CopyReply(raw *bytes.Buffer, r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	raw.Write(line)
	if err != nil {
		return err
	}
	if len(line) < 3 {
		return fmt.Errorf("a reply line of %q", line)
	}
	var children int
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return nil
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil {
		return fmt.Errorf("a reply line of %q", line)
	}
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return nil
		}
		_, err := io.CopyN(raw, r, int64(n)+2)
		return err
	case '*', '~', '>':
		children = n
	case '%':
		children = 2 * n
	case '|':
		children = 2*n + 1
	default:
		return fmt.Errorf("a reply line of %q", line)
	}
	for range children {
		if err := CopyReply(raw, r); err != nil {
			return err
		}
	}
	return nil
}

// Bulk is the text of a bulk string, and whether it is one.
func Bulk(raw string) (string, bool) {
	head, rest, found := strings.Cut(raw, "\r\n")
	if !found || !strings.HasPrefix(head, "$") || head == "$-1" {
		return "", false
	}
	return strings.TrimSuffix(rest, "\r\n"), true
}

// ContainsLine says whether a bulk reply of lines has this one.
func ContainsLine(raw, line string) bool { return strings.Contains(raw, "\n"+line+"\r\n") }

// KeyList reads every bulk string of a reply, sorted.
func KeyList(raw string) (keys []string) {
	lines := strings.Split(raw, "\r\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "$") && line != "$-1" && i+1 < len(lines) {
			keys = append(keys, lines[i+1])
		}
	}
	slices.Sort(keys)
	return keys
}

// Pairs reads a map, or an array of keys and values, of scalars; a nested value is left out.
func Pairs(t testing.TB, raw string) map[string]string {
	t.Helper()
	r := bufio.NewReader(strings.NewReader(raw))
	head, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
	if head[0] == '*' {
		n /= 2
	}
	m := map[string]string{}
	for range n {
		var key, value bytes.Buffer
		if CopyReply(&key, r) != nil || CopyReply(&value, r) != nil {
			t.Fatalf("not pairs: %q", raw)
		}
		name, _ := Bulk(key.String())
		if text, ok := Bulk(value.String()); ok {
			m[name] = text
		} else {
			m[name] = strings.TrimSpace(value.String()[1:])
		}
	}
	return m
}

// InfoSections are the fields of a reply to INFO, by section and name.
func InfoSections(raw string) map[string]map[string]string {
	sections, section := map[string]map[string]string{}, ""
	text, _ := Bulk(raw)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = name
			sections[section] = map[string]string{}
		} else if field, value, ok := strings.Cut(line, ":"); ok {
			sections[section][field] = value
		}
	}
	return sections
}

// CommandRow is the first row of a reply to COMMAND INFO in short, "" for a command that is not there.
func CommandRow(t *testing.T, raw string) string {
	t.Helper()
	lines := strings.Split(raw, "\r\n")
	if len(lines) < 7 || !strings.HasPrefix(lines[1], "*") || lines[1] == "*-1" {
		return ""
	}
	var flags []string
	i := 6
	for ; i < len(lines) && lines[i][0] == '+'; i++ {
		switch flag := lines[i][1:]; flag {
		case "write", "readonly", "denyoom", "admin":
			flags = append(flags, flag)
		}
	}
	slices.Sort(flags)
	return fmt.Sprintf("%s %s %v %s %s %s", lines[3], lines[4][1:], flags, lines[i][1:], lines[i+1][1:], lines[i+2][1:])
}
