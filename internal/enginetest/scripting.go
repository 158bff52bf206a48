package enginetest

import (
	"strings"

	"celld/resp/scripts"
)

func scriptCommands() []command {
	return []command{
		{"eval", -3, noScript, countedKeys, eval},
		{"evalsha", -3, noScript, countedKeys, evalSHA},
	}
}

func eval(x *call) {
	s, err := x.node.scripts.Load(x.args[1])
	if err != nil {
		x.fail(err.Error())
		return
	}
	x.runScript(s)
}

func evalSHA(x *call) {
	s, ok := x.node.scripts.Get(x.arg(1))
	if !ok {
		x.fail(errNoScript)
		return
	}
	x.runScript(s)
}

// scriptRun runs the commands of a script: it is the script's Host.
type scriptRun struct {
	call  *call // that runs the script
	resp3 bool  // for redis.call
	full  bool  // the memory was, when the script began
	wrote bool
	out   []byte
}

func (x *call) runScript(s *scripts.Script) {
	n, _ := integer(x.args[2])
	run := &scriptRun{call: x, full: x.node.makeRoom(x.nowMs())}
	x.node.scripts.Run(s, run, x.args[3:3+n], x.args[3+n:])
	x.out = x.node.scripts.AppendReply(x.out, x.resp3)
}

func (r *scriptRun) Tick() error         { return nil }
func (r *scriptRun) NowNS() int64        { return 0 } // for the pace of ticks, which nobody needs
func (r *scriptRun) Log(int, string)     {}
func (r *scriptRun) SetProtocol(v int)   { r.resp3 = v == 3 }
func (r *scriptRun) OverOutput(int) bool { return false }

// Call runs a command, after the checks that Redis makes for scripts.
func (r *scriptRun) Call(args [][]byte) []byte {
	by := r.call
	x := &call{node: by.node, client: by.client, db: by.db, dbIndex: by.dbIndex, args: args, nowNS: by.nowNS, resp3: r.resp3}
	x.out = r.out[:0]
	if wrong := r.check(x); wrong != "" {
		x.fail(wrong)
	} else {
		r.wrote = r.wrote || x.command.flags&writes != 0
		x.execute()
	}
	r.out = x.out
	return r.out
}

func (r *scriptRun) check(x *call) string {
	found, wrong := x.lookup()
	switch {
	case x.command != nil && x.command.flags&noScript != 0:
		return "ERR This Redis command is not allowed from script"
	case strings.HasPrefix(wrong, "ERR unknown command"):
		return "ERR Unknown Redis command called from script"
	case strings.HasPrefix(wrong, "ERR wrong number of arguments"):
		return "ERR Wrong number of args calling Redis command from script"
	case wrong != "":
		return wrong
	}
	flags := x.command.flags
	switch {
	case flags&writes != 0 && x.node.refusesWrites():
		return errReplica
	case flags&grows != 0 && r.full && !r.wrote:
		return errOOM
	}
	switch wrong := x.node.redirect(x, found, true); {
	case strings.HasPrefix(wrong, "CLUSTERDOWN"):
		return "ERR Script attempted to execute a command while the cluster is down"
	case strings.HasPrefix(wrong, "CROSSSLOT"):
		return "ERR Script attempted to access keys that do not hash to the same slot"
	case wrong != "":
		return "ERR Script attempted to access a non local key in a cluster node"
	}
	return ""
}
