package resp

import "testing"

// What is no TAT is refused, as SET refuses it, and nothing changes.
func TestOnlyTATsAreStored(t *testing.T) {
	c := newWorld(t).connect()
	c.do("SET", "k", "9000000000000000000", "EX", "100")
	for _, value := range []string{"", "x", "-1", "007", "5.5", "18446744073709551616", " 5"} {
		for _, words := range [][]string{{"SETNX", "new", value}, {"SETNX", "k", value}, {"GETSET", "k", value}, {"GETSET", "new", value}} {
			if got := c.do(words...); got != "-"+errNotInteger+"\r\n" {
				t.Errorf("%q: %q", words, got)
			}
		}
	}
	c.want("GET k", "$19\r\n9000000000000000000\r\n")
	c.want("TTL k", ":100\r\n")
	c.want("DBSIZE", ":1\r\n")
}

// At noeviction nothing is made where there is no room, and what is there may be changed.
func TestGetSetAndCopyWhenFull(t *testing.T) {
	c := newWorld(t, "max-keys", "1", "maxmemory-policy", "noeviction").connect()
	c.want("SETNX k 9000000000000000000", ":1\r\n")
	for _, line := range []string{"SETNX new 9000000000000000000", "GETSET new 9000000000000000000", "COPY k new", "COPY k new REPLACE"} {
		c.want(line, "-"+errOOM+"\r\n")
	}
	c.want("GETSET k 9000000000000000001", "$19\r\n9000000000000000000\r\n")
	c.want("RENAMENX k new", ":1\r\n")
	c.want("GETDEL new", "$19\r\n9000000000000000001\r\n")
	c.want("SETNX k 9000000000000000000", ":1\r\n")
}
