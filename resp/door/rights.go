package door

import (
	"fmt"

	"celld/resp/acl"
	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/spec"
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

// refuseWithin returns what forbid does, or why the server does not run a command now; or nil.
func (d *Door) refuseWithin(from Caller, row *command.Row) (refused *CallError) {
	text, refusal := d.Closed(row), error(nil)
	if row.Flags&spec.Write != 0 {
		refusal = d.Persist.Refusal()
	}
	switch refused = d.forbid(from, row); {
	case refused != nil:
	case text == ErrBusy:
		refused = &CallError{text, ErrScriptBusy}
	case text != "":
		refused = &CallError{Text: text}
	case refusal != nil:
		refused = &CallError{fmt.Sprintf(ErrMisconf, refusal), refusal}
	default:
		return nil
	}
	d.Stats.Rejected(row, refused.Text)
	return refused
}

// noteRefused logs what the user default may not do.
func (d *Door) noteRefused(from Caller, row *command.Row, reason acl.Reason, object string) {
	c := &client.Client{Addr: from.Addr}
	c.User.Store(d.Users.Default)
	d.LogDenial(c, acl.Entry{Reason: reason, Context: "toplevel", Object: object, Username: acl.DefaultName, AtNS: d.Clock()})
	d.LogOf(c, RefusedCommand, "command", row.FullName(), "reason", "the user may not use this "+string(reason))
}

// forbidKeys returns the error of a question about keys to which the user default has no right, or nil. It gives an access that user's
// rights.
func (d *Door) forbidKeys(from Caller, q question, a *store.Access) *CallError {
	rights := d.Users.Default.Rights()
	if rights.MayAll() {
		return nil
	}
	a.May = rights.OnKey()
	row := q.row()
	for key := range q.keys {
		if !rights.MayTouch(key, row.AccessTo(0, nil)) {
			d.noteRefused(from, row, acl.DeniedKey, string(key))
			d.Stats.Rejected(row, ErrNoPermKey)
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
