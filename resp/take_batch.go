package resp

import (
	"bytes"
	"strconv"

	"celld/resp/wire"
	"celld/store"
)

// takeForms recognise the CL.TAKE calls of a pipeline whose limits and options were asked lately, as throttleBatch does for
// CL.THROTTLE: all but the key is compared with earlier calls, and where it is the same nothing of it is parsed again.
//
// With redis-benchmark -P 128 on 50 connections this and a short way for single limits took a call from 0.37 to 0.24 µs of
// CPU, and Store.TakeBatch to 0.20.
type takeForms struct {
	known [4]takeForm
	last  int
	next  int

	reqs  [store.MaxTakes]store.TakeRequest
	forms [store.MaxTakes]*takeForm // of the requests
	calls []store.Call              // of all requests
}

// mostCalls is how many limits a batch may have in all: 64 KB of calls.
const mostCalls = 256

// takeForm is a call without its key.
type takeForm struct {
	head, tail []byte // what stands before the key's length and after the key; no head: no form
	call       takeCall
	limits     []takeLimit
	version    uint64 // of the policies
	logMax     int64
}

// maxForm is the longest form, in bytes.
const maxForm = 1 << 10

var takeName = []byte("CL.TAKE")

// learn keeps the form of a call that was read in full and answered.
func (f *takeForms) learn(s *Session, frame []byte, args [][]byte) {
	if frame[0] != '*' || len(args) < 3 || big(args) || !bytes.EqualFold(args[0], takeName) || len(frame)-len(args[1]) > maxForm {
		return
	}
	version := s.srv.store.PoliciesVersion() // before the limits are read: it may change meanwhile
	form := &f.known[f.next]
	form.head, form.limits = form.head[:0], form.limits[:0]
	rest := args[2:]
	for first := true; len(rest) > 0 && (first || isLimit(rest[0])); first, rest = false, rest[1:] {
		limit, text := s.limit(rest[0])
		if text != "" {
			return
		}
		form.limits = append(form.limits, limit)
	}
	call := takeCall{TakeOptions: store.TakeOptions{Cost: 1}}
	if call.parseOptions(rest) != "" {
		return
	}
	nameAt := bytes.IndexByte(frame, '\n') + 1
	head := nameAt + len("$7\r\nCL.TAKE\r\n$")
	keyStart := head + len(strconv.Itoa(len(args[1]))) + 2
	if !bytes.HasPrefix(frame[nameAt:], []byte("$7\r\n")) || !bytes.HasPrefix(frame[keyStart:], args[1]) {
		return // lengths that are written otherwise
	}
	f.last, f.next = f.next, (f.next+1)%len(f.known)
	form.head = append(form.head[:0], frame[:head]...)
	form.tail = append(form.tail[:0], frame[keyStart+len(args[1]):]...)
	form.call, form.version, form.logMax = call, version, s.srv.cfg.logMax.Get()
}

// recognise finds the form and the key of the call at the start of data, and its length in bytes.
func (f *takeForms) recognise(data []byte, maxBulk int) (form *takeForm, key []byte, n int) {
	for i := range f.known {
		at := (f.last + i) % len(f.known)
		form := &f.known[at]
		if len(form.head) == 0 || !bytes.HasPrefix(data, form.head) {
			continue
		}
		length, start, ok := wire.ReadLength(data, len(form.head))
		if !ok || length > maxBulk || len(data)-start < length {
			return nil, nil, 0
		}
		if bytes.HasPrefix(data[start+length:], form.tail) {
			f.last = at
			return form, data[start : start+length : start+length], start + length + len(form.tail)
		}
	}
	return nil, nil, 0
}

// read fills the batch with the calls at the start of data that have a known form. It returns how many, and their bytes.
func (f *takeForms) read(s *Session, data []byte, maxBulk int) (takes, n int) {
	version, logMax := s.srv.store.PoliciesVersion(), s.srv.cfg.logMax.Get()
	if f.calls == nil {
		f.calls = make([]store.Call, mostCalls)
	}
	calls := f.calls
	for takes < len(f.reqs) {
		form, key, length := f.recognise(data[n:], maxBulk)
		if form == nil || form.version != version || form.logMax != logMax || len(form.limits) > len(calls) {
			break
		}
		r := &f.reqs[takes]
		r.Calls, r.TakeOptions, f.forms[takes] = calls[:len(form.limits)], form.call.TakeOptions, form
		calls = calls[len(form.limits):]
		for i, l := range form.limits {
			c := &r.Calls[i]
			c.Key, c.Limit, c.Policy = key, l.Literal, l.policy
		}
		n += length
		takes++
	}
	return takes, n
}

// takes answers as many calls at the start of data as are like earlier ones, and returns their bytes.
func (s *Session) takes(data []byte, maxBulk int) int {
	f := &s.scratch.takes
	takes, n := f.read(s, data, maxBulk)
	if takes == 0 {
		return 0
	}
	row := s.srv.commands.take
	s.client.lastCommand.Store(row)
	mark := len(s.out)
	s.srv.store.TakeBatch(f.reqs[:takes], s.access())
	for i := range f.reqs[:takes] {
		r := &f.reqs[i]
		if r.Err != nil {
			start := len(s.out)
			s.replyStoreError(r.Err)
			s.failed(row, s.out[start:])
			continue
		}
		t := &f.forms[i].call
		t.calls = r.Calls
		s.scratch.stats.decided.take(takeAllowed, t, r.Taken.Limited)
		s.replyTaken(t, &r.Taken)
	}
	if s.srv.synchronous {
		s.noteWrites(mark, takes)
	}
	s.scratch.stats.count(row, int64(takes))
	return n
}
