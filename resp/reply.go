package resp

// Replies of handlers that still reach their session.

func (s *Session) replyOK()                              { s.call.OK() }
func (s *Session) replyStatus(text string)               { s.call.Status(text) }
func (s *Session) replyInt(n int64)                      { s.call.Int(n) }
func (s *Session) replyBool(yes bool)                    { s.call.Bool(yes) }
func (s *Session) replyBulk(b []byte)                    { s.call.Bulk(b) }
func (s *Session) replyString(text string)               { s.call.String(text) }
func (s *Session) replyArray(n int)                      { s.call.Array(n) }
func (s *Session) replyMap(n int)                        { s.call.Map(n) }
func (s *Session) replySet(n int)                        { s.call.Set(n) }
func (s *Session) replyNull()                            { s.call.Null() }
func (s *Session) replyNullArray()                       { s.call.NullArray() }
func (s *Session) replyText(text string)                 { s.call.Text(text) }
func (s *Session) replyDouble(f float64)                 { s.call.Double(f) }
func (s *Session) replyStrings(list []string)            { s.call.Strings(list) }
func (s *Session) replyStatuses(words []string)          { s.call.Statuses(words) }
func (s *Session) replyPair(name, value string)          { s.call.Pair(name, value) }
func (s *Session) replyField(name string, n int64)       { s.call.Field(name, n) }
func (s *Session) replyPairs(pairs [][2]string)          { s.call.Pairs(pairs) }
func (s *Session) replyError(format string, args ...any) { s.call.Error(format, args...) }
