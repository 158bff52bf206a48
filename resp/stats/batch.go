package stats

import "celld/resp/command"

// Batch gathers the counts of a batch: 64 decisions then cost one addition to shared memory instead of 64, and one more
// reading of the clock instead of 128.
type Batch struct {
	startNS int64
	slowNS  int64 // time of the commands that were timed one by one
	calls   int64
	fast    int64         // how many of them share the rest of the batch's time
	runs    [4]commandRun // a pipeline has few kinds of commands; a fifth kind is counted at once
}

type commandRun struct {
	row *command.Row
	n   int64
}

// Count counts n calls of a fast command, which share the batch's time.
func (b *Batch) Count(row *command.Row, n int64, lane uint8) {
	b.calls += n
	b.fast += n
	for i := range b.runs {
		run := &b.runs[i]
		if run.row == nil {
			run.row = row
		}
		if run.row == row {
			run.n += n
			return
		}
	}
	Of(row).lane(lane).calls.Add(n)
}

// CountSlow counts a command that was timed by itself, or that ran inside EXEC, which was.
func (b *Batch) CountSlow(row *command.Row, tookNS int64, inExec bool, lane uint8) {
	b.calls++
	if !inExec {
		b.slowNS += tookNS
	}
	Of(row).lane(lane).timed(1, tookNS)
}

// Begin begins a batch.
func (b *Batch) Begin(nowNS int64) { b.startNS = nowNS }

// TookNS notes time that is no fast command's.
func (b *Batch) TookNS(ns int64) { b.slowNS += ns }

// Calls is how many calls the batch has counted.
func (b *Batch) Calls() int64 { return b.calls }

// Finish adds the counts to the rows at the end of a batch. It returns the time of that, in Unix nanoseconds, and how long each of the fast
// commands took, of which there may be none.
func (b *Batch) Finish(clock func() int64, lane uint8) (nowNS, eachNS int64, fast bool) {
	nowNS, fast = b.startNS+b.slowNS, b.fast > 0
	if fast {
		nowNS = clock()
		eachNS = max(0, nowNS-b.startNS-b.slowNS) / b.fast
		for _, run := range b.runs {
			if run.row == nil {
				break
			}
			Of(run.row).lane(lane).timed(run.n, eachNS)
		}
	}
	*b = Batch{}
	return nowNS, eachNS, fast
}
