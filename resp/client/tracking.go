package client

// Tracking is what CLIENT TRACKING has set on a connection; 0 is off.
//
// A client that tracks keeps what it has read until the server announces that the key has changed. Redis remembers who has
// read what. celld remembers nothing: it announces a key right behind the reply to the command that has read it, as if it
// had changed then. Limits change with nearly every call, so a copy is worth little, and looking for readers would cost
// each call.
type Tracking uint32

// Bits of Tracking.
const (
	Tracks Tracking = 1 << iota
	OptsIn          // only what CLIENT CACHING says
)

// Tracking is how the connection tracks.
func (c *Client) Tracking() Tracking { return Tracking(c.tracking.Load()) }

// Redirection is the id of the client that receives the announcements: 0 for this one, -1 for none.
func (c *Client) Redirection() int64 {
	if c.Tracking() == 0 {
		return -1
	}
	return 0
}
