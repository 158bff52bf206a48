package door

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/store"
)

// Refused is why a caller may not run a command, whatever its keys; nil: it may. It is a *CallError.
func (d *Door) Refused(from Caller, name string) error {
	if refused := d.forbid(from, d.Commands.Find([]byte(name))); refused != nil {
		return refused
	}
	return nil
}

// forbid returns why a caller may not run a command, whatever its keys, and logs that; or nil.
func (d *Door) forbid(from Caller, row *command.Row) *CallError {
	switch {
	case from.Trusted:
	case !d.Users.Open():
		return &CallError{Text: errNoToken}
	case !d.Users.Default.Rights().MayRun(row.ACL, nil):
		d.noteRefused(from, row, acl.DeniedCommand, row.FullName())
		return &CallError{Text: fmt.Sprintf(ErrNoPermCommand, row.FullName())}
	}
	return nil
}

// refuse returns why a caller may not run a command on these keys now, and counts that; or nil.
func (d *Door) refuse(from Caller, row *command.Row, keys iter.Seq[[]byte]) (refused *CallError) {
	if refused = d.forbid(from, row); refused == nil && !from.Trusted {
		refused = d.forbidKeys(from, row, keys)
	}
	if refused == nil {
		refused = cmp.Or(d.Closed(row), d.Unkept(row))
	}
	if refused != nil {
		d.Stats.Rejected(row, refused.Text)
	}
	return refused
}

// textOf is the text of what the store has refused. A key to which a lease leads, and to which the caller has no right, is refused and
// logged as one that the call names.
func (d *Door) textOf(from Caller, row *command.Row, err error) string {
	if refused := (*store.NoRightError)(nil); errors.As(err, &refused) {
		d.noteRefused(from, row, acl.DeniedKey, string(refused.Key))
		return ErrNoPermKey
	}
	return StoreText(err)
}

// noteRefused logs what the user default may not do.
func (d *Door) noteRefused(from Caller, row *command.Row, reason acl.Reason, object string) {
	c := &client.Client{Addr: from.Addr}
	c.User.Store(d.Users.Default)
	d.LogDenial(c, acl.Entry{Reason: reason, Context: "toplevel", Object: object, Username: acl.DefaultName, AtNS: d.Clock()})
	d.LogOf(c, RefusedCommand, "command", row.FullName(), "reason", "the user may not use this "+string(reason))
}

// forbidKeys returns the error of a command with a key to which the user default has no right, and logs that; or nil.
func (d *Door) forbidKeys(from Caller, row *command.Row, keys iter.Seq[[]byte]) *CallError {
	rights := d.Users.Default.Rights()
	if rights.MayAll() {
		return nil
	}
	for key := range keys {
		if !rights.MayTouch(key, row.AccessTo(0, nil)) {
			d.noteRefused(from, row, acl.DeniedKey, string(key))
			return &CallError{Text: ErrNoPermKey}
		}
	}
	return nil
}

// LogDenial adds what a client was refused to ACL LOG, and counts it.
func (d *Door) LogDenial(c *client.Client, e acl.Entry) {
	switch e.Reason {
	case acl.DeniedCommand:
		d.Stats.DeniedCommands.Add(1)
	case acl.DeniedKey:
		d.Stats.DeniedKeys.Add(1)
	case acl.DeniedCertificate:
		d.Stats.DeniedCerts.Add(1)
	}
	e.Client = c.Line(e.AtNS)
	d.ACLLog.Add(e, int(d.Config.ACLLogMaxLen.Get()))
}
