package remote

import (
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"celld/cell"
	"celld/store"
	"celld/store/remote/link"
	"celld/store/remote/queue"
	"celld/store/remote/view"
)

// counting is an INCR or INCREX. A script decides those of plain counts, in one round trip. It does not know which of larger integers are
// TATs, nor what a key still holds that is over: then a view decides, by the code of package memory.
type counting struct {
	queue.Common
	store   *Store
	request *store.CountRequest
	access  store.Access
	pending *pending
}

// CountBatch is store.Limiter's. Whatever --store-failure says, what the engine does not answer is an error.
func (s *Store) CountBatch(reqs []store.CountRequest, a store.Access, w store.Waker) bool {
	b := newPending(len(reqs), w)
	deadline := s.deadline()
	for i := range reqs {
		o := &counting{queue.Common{Key: s.options.Prefix + string(reqs[i].Key), Deadline: deadline}, s, &reqs[i], a, b}
		s.tatCache.forget(o.Key)
		if o.plain() {
			s.queues.Enqueue(o)
		} else {
			s.queues.Enqueue(o.AsChange())
		}
	}
	return b.done()
}

// longestPlain is the longest expiry that the script sets, 100 years in ns: it ends before 2262.
const longestPlain = 100 * 365 * 24 * int64(time.Hour)

// plain reports whether the script can compute with the numbers of the request.
func (o *counting) plain() bool {
	r := o.request
	return r.By >= -cell.LargestCount && r.By <= cell.LargestCount && (r.Expire != store.ExpireIn || r.TimeNS <= longestPlain)
}

// GoesWith is queue.Operation's. One that may delete the key goes alone.
func (o *counting) GoesWith(first queue.Operation) bool {
	f, counts := first.(*counting)
	return counts && (f == o || f.request.Expire != store.ExpireAt && o.request.Expire != store.ExpireAt)
}

// Send is queue.Operation's.
func (o *counting) Send(b *queue.Group) {
	request := &link.Request{Script: countScript, Keys: []string{o.Key}, Deadline: o.Deadline}
	for _, one := range b.Operations {
		request.Args = append(request.Args, one.(*counting).args()...)
	}
	request.Done = func(answer rueidis.RedisMessage, err error) {
		if err != nil {
			b.End(err)
			return
		}
		numbers, err := answer.AsIntSlice()
		switch {
		case err != nil || len(numbers) > 0 && len(numbers) != 3*len(b.Operations):
			b.End(link.ErrAnswer)
		case len(numbers) == 0:
			o.store.views.Decide(b)
		default:
			for i, one := range b.Operations {
				r := one.(*counting).request
				r.Value, r.Added, r.Met, r.Err = numbers[3*i], numbers[3*i+1], numbers[3*i+2] == 1, nil
			}
			b.End(nil)
		}
	}
	o.store.link.Send(request)
}

// Answer is queue.Operation's.
func (o *counting) Answer(err error) {
	if r := o.request; err != nil {
		r.Value, r.Added, r.Err = 0, 0, err
	}
	o.pending.answered()
}

// AsChange returns a request as a change.
func (o *counting) AsChange() *view.Change {
	key := []byte(o.Key[len(o.store.options.Prefix):])
	return o.store.views.NewChange([]string{o.Key}, o.Deadline, func(v *view.View) {
		o.request.Key = key // the caller may have changed its own
		one := []store.CountRequest{*o.request}
		v.CountBatch(one, v.At(o.access), nil)
		*o.request = one[0]
	}, o.Answer)
}

var expireWord = [...]string{store.NeverExpire: "PERSIST", store.ExpireIn: "PX", store.ExpireAt: "PXAT"}

// args are those of countScript.
func (o *counting) args() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	c := o.request.Count
	if fake := o.store.options.Time; fake != nil && c.Expire == store.ExpireIn { // in tests, whose time is not the engine's
		c.Expire, c.TimeNS = store.ExpireAt, fake()+c.TimeNS
	}
	only := [...]string{store.Always: "", store.IfAbsent: "NX", store.IfPresent: "XX"}[c.Only]
	args := []string{number(c.By), number(c.Lower), number(c.Upper), "", only, expireWord[c.Expire], "", ""}
	if c.Saturate {
		args[3] = "SATURATE"
	}
	if c.Expire >= store.ExpireIn {
		args[6] = number(c.TimeNS / 1e6)
	}
	if c.IfNone {
		args[7] = "ENX"
	}
	return args
}

// countScript decides requests in their order, each of 8 arguments. It answers for each what the key holds, how much was added, and 1 if
// its condition is met. It answers nothing, and changes nothing, if one needs a view: the key holds no plain count, or would hold none.
var countScript = link.NewScript(`
local most = ` + strconv.FormatInt(cell.LargestCount, 10) + `
local found, n = redis.pcall('GET', KEYS[1]), 0
if found then
  n = tonumber(found)
  if not n or n < -most or n > most or string.format('%d', n) ~= found then return {} end
end
local there, answer, changed, kind, ms, expires = found ~= false, {}, false, ''
for i = 1, #ARGV, 8 do
  local only, added = ARGV[i + 4], 0
  local met = only == '' or (only == 'XX') == there
  if met then
    local sum, lower, upper = n + ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    local inside = sum >= lower and sum <= upper
    if not inside and ARGV[i + 3] ~= '' then
      inside, sum = true, sum < lower and lower or upper
    end
    if inside then
      if sum < -most or sum > most then return {} end
      local keeps = ARGV[i + 5] == ''
      if ARGV[i + 7] ~= '' then
        if expires == nil then expires = found and redis.call('PTTL', KEYS[1]) >= 0 end
        keeps = expires
      end
      if not keeps then
        kind, ms = ARGV[i + 5], ARGV[i + 6]
        expires = kind ~= 'PERSIST'
      end
      added = sum - n
      n, there, changed = sum, true, true
    end
  end
  answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = n, added, met and 1 or 0
end
if changed then
  local text = string.format('%d', n)
  if kind == '' then
    redis.call('SET', KEYS[1], text, 'KEEPTTL')
  elseif kind == 'PERSIST' then
    redis.call('SET', KEYS[1], text)
  else
    redis.call('SET', KEYS[1], text, kind, ms)
  end
end
return answer
`)
