package link

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]struct {
		is   address
		text string // without passwords; "": as it was given
	}{
		"redis://cache":            {address{Hosts: []string{"cache:6379"}}, "redis://cache:6379"},
		"redis://cache:7000/":      {address{Hosts: []string{"cache:7000"}}, "redis://cache:7000"},
		"redis://10.0.0.1:7000/15": {address{Hosts: []string{"10.0.0.1:7000"}, DB: 15}, ""},
		"rediss://cache.example-1.com?server-name=a.b": {address{Hosts: []string{"cache.example-1.com:6379"}, TLS: true,
			ServerName: "a.b"}, "rediss://cache.example-1.com:6379"},
		"redis://me@cache:1": {address{Hosts: []string{"cache:1"}, Username: "me"},
			"redis://cache:1"},
		"redis://:secret@cache:1": {address{Hosts: []string{"cache:1"}, Password: "secret"},
			"redis://cache:1"},
		"redis://me:se%40c%2Fr%3Ae+t@cache:1": {address{Hosts: []string{"cache:1"}, Username: "me",
			Password: "se@c/r:e+t"}, "redis://cache:1"},
		"redis://me:a:b@c@cache:1": {address{Hosts: []string{"cache:1"}, Username: "me",
			Password: "a:b@c"}, "redis://cache:1"},
		"redis://h1,h2:7001,[::1]:7002": {address{Hosts: []string{"h1:6379", "h2:7001", "[::1]:7002"}},
			"redis://h1:6379,h2:7001,[::1]:7002"},
		"redis://[2001:db8::1]": {address{Hosts: []string{"[2001:db8::1]:6379"}},
			"redis://[2001:db8::1]:6379"},
		"redis://[fe80::1%25eth0]:1": {address{Hosts: []string{"[fe80::1%eth0]:1"}}, ""},
		"redis://h1,h2:1/3?master=my%20one": {address{Hosts: []string{"h1:26379", "h2:1"}, DB: 3,
			Master: "my one"}, "redis://h1:26379,h2:1/3?master=my%20one"},
		"redis://h1:1?master=m&sentinel-password=s%26&sentinel-username=u": {address{Hosts: []string{"h1:1"}, Master: "m",
			SentinelUsername: "u", SentinelPassword: "s&"}, "redis://h1:1?master=m"},
		"unix:///run/redis%20s": {address{Hosts: []string{"/run/redis s"}, Unix: true}, ""},
		"redis+unix://me:pw@/run/r@1?db=2": {address{Hosts: []string{"/run/r@1"}, Unix: true, DB: 2,
			Username: "me", Password: "pw"}, "unix:///run/r@1?db=2"},
	} {
		got, err := ParseURL(text)
		if err != nil || !reflect.DeepEqual(got, want.is) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if want.text == "" {
			want.text = text
		}
		if got.String() != want.text {
			t.Errorf("%s is shown as %s, want %s", text, got, want.text)
		}
	}
}

// Errors name what is wrong, and nothing that could be a password.
func TestParseURLErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "must start with redis://",
		"cache:6379":                         "must start with redis://",
		"http://secret":                      "must start with redis://",
		"redis:secret":                       "must start with redis://",
		"redis://":                           "host is missing",
		"redis:///1":                         "host is missing",
		"redis://:secret@":                   "host is missing",
		"redis://h1,,h2":                     "address 2: the host is missing",
		"redis://h:0":                        "port must be a number",
		"redis://h:65536":                    "port must be a number",
		"redis://h:":                         "port must be a number",
		"redis://:secret":                    "port must be a number",
		"redis://::1":                        "must be in brackets",
		"redis://::1:6379":                   "must be in brackets",
		"redis://[cache]":                    "must be an IPv6 address",
		"redis://[127.0.0.1]":                "must be an IPv6 address",
		"redis://[::1":                       "must be in brackets",
		"redis://my secret":                  "must be a name or an IP address",
		"redis://h/secret":                   "must be a number",
		"redis://h/-1":                       "must be a number",
		"redis://h/1/2":                      "must be a number",
		"redis://h1,h2/1":                    "Cluster",
		"redis://me:sec/ret@h":               "%2F",
		"redis://me:sec?ret@h":               "%3F",
		"redis://me:sec#ret@h":               "%23",
		"redis://me:secret%@h":               "%25",
		"redis://me:secret%zz@h":             "%25",
		"redis://me:secret%00@h":             "%00",
		"redis://h?secret":                   "options are",
		"redis://h?master":                   "no value",
		"redis://h?master=m&master=n":        "twice",
		"redis://h?sentinel-password=secret": "need master",
		"redis://h?server-name=h":            "options are",
		"unix://secret":                      "socket's path",
		"unix://":                            "socket's path",
		"unix://host/secret":                 "socket's path",
		"unix:///s?master=secret":            "only option",
		"unix:///s?db=secret":                "must be a number",
	} {
		_, err := ParseURL(text)
		switch {
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", text, err, want)
		case strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: the error shows too much: %v", text, err)
		}
	}
}

// What is shown of a URL reads as the same engine, without its users.
func FuzzParseURL(f *testing.F) {
	for _, text := range []string{"redis://me:pw@h1:1,[::1%25a]:2/0?master=m", "rediss://h/3?server-name=s", "unix://a@/p?db=1",
		"redis://h?sentinel-password=%20&master=x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseURL(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseURL(a.String())
		a.Username, a.Password, a.SentinelUsername, a.SentinelPassword, a.ServerName = "", "", "", "", ""
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%q is shown as %q, which is %+v, %v", text, a, again, err)
		}
	})
}
