package main

import "testing"

func TestStory(t *testing.T) {
	trace := `1           0s plan: 2 clients
2         10ms celld 127.0.0.1: INFO ready addr=x
2         10ms celld 127.0.0.1: serves
3         11ms client 0: asks CL.TAKE k0 5/1s COST 1
4         11ms client 0: asks CL.TAKE k0 5/1s PEEK
5         12ms operator: asks ["CL.POLICY" "SET" "plan" "5/1s" "it's"]
6         13ms client 0: is answered [0 5 4 -1 200 1 0] to CL.TAKE k0 5/1s COST 1
7         14ms fault: 0: kill for 2s
8         15ms client 0: has no answer to CL.TAKE k0 5/1s PEEK: EOF
9         15ms operator: is answered 1
10         16ms client 1: posts /v1/take to 127.0.0.1: {"key":"k0","limits":["5/1s"]}
11         17ms client 1: gets 200: {"allowed":true}, <nil>
12         17ms client 1: asks INFO stats
13         17ms client 1: is answered # Stats
total_commands_processed:3

13         17ms celld 127.0.0.1: shall be ready and idle
13         17ms the end: asks INFO stats
13         17ms the end: is answered # Stats
total_commands_processed:3

14         18ms checker: no order of the calls of key k0 explains their answers:
  3-6 client 0
15         19ms celld 127.0.0.1: is told to stop
FAULT no order
  3-6 client 0 CL.TAKE
  4-8 client 0 CL.TAKE k0 5/1s PEEK: no answer
  7 crash at 2
FAULT that follows
  from this
hash=1 events=2
`
	const want = `          0s  plan: 2 clients
        11ms  client 0$ redis-cli CL.TAKE k0 5/1s COST 1  → [0 5 4 -1 200 1 0]
        11ms  client 0$ redis-cli CL.TAKE k0 5/1s PEEK  → has no answer: EOF
        12ms  operator$ redis-cli CL.POLICY SET plan 5/1s 'it'\''s'  → 1
        14ms  fault: 0: kill for 2s
        16ms  client 1$ curl 127.0.0.1:8080/v1/take --json '{"key":"k0","limits":["5/1s"]}'  → 200: {"allowed":true}, <nil>
        17ms  client 1$ redis-cli INFO stats  → # Stats
        18ms  checker: no order of the calls of key k0 explains their answers:
  3-6 client 0
FAULT no order
  4-8 client 0 CL.TAKE k0 5/1s PEEK: no answer
  7 crash at 2
`
	if got := storyOf(trace); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
