package resp

import (
	"bytes"
	"strings"
)

// lolwut is a leaky bucket.
const lolwut = `
     .  .     .
   .    .  .     .
 \      .    .      /
  \~~~~~~~~~~~~~~~~/
   \   o    o   o /
    \    o    o  /
     \__________/
          '
          '      one at a time, please

`

// cmdLolwut is LOLWUT [VERSION n] [...]. Every version draws the same picture.
func cmdLolwut(s *Session, args [][]byte) {
	if len(args) > 2 && bytes.EqualFold(args[1], []byte("VERSION")) {
		if _, ok := parseInt(args[2]); !ok {
			s.replyError(errNotInteger)
			return
		}
	}
	s.replyText(strings.TrimPrefix(lolwut, "\n") + "celld " + s.srv.version + ", Redis ver. " + RedisVersion + "\n")
}
