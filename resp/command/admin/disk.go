package admin

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"celld/persistence"
	"celld/persistence/dir"
	"celld/resp/command"
	"celld/resp/command/argument"
)

// onDisk is a handler of a command on files, which a server has only for keys of its own.
func (f family) onDisk(run func(*command.Call, *persistence.Disk)) func(*command.Call) {
	return func(c *command.Call) {
		if disk := f.server().Disk; disk != nil {
			run(c, disk)
		} else {
			c.Error("%s", engineKeeps(strings.ToUpper(c.Row.Name)))
		}
	}
}

func engineKeeps(name string) string { return fmt.Sprintf(ErrEngineKeeps, name) }

func save(c *command.Call, disk *persistence.Disk) {
	switch err := disk.Save(); {
	case errors.Is(err, persistence.ErrSaving):
		c.Error(ErrSaving)
	case errors.Is(err, dir.ErrInUse):
		c.Error("ERR %s", err)
	case err != nil:
		c.Error("ERR")
	default:
		c.OK()
	}
}

// In a transaction, Redis cannot fork and so only schedules. celld would read the store while the transaction has changed half of
// it, so it schedules as well.
const (
	saveScheduled    = "Background saving scheduled"
	rewriteScheduled = "Background append only file rewriting scheduled"
)

func backgroundSave(c *command.Call, disk *persistence.Disk) {
	schedule := len(c.Args) == 2 && bytes.EqualFold(c.Args[1], []byte("SCHEDULE"))
	if len(c.Args) > 1 && !schedule {
		c.Error(argument.ErrSyntax)
		return
	}
	if c.Inside() {
		started(c, disk.ScheduleSave(), saveScheduled)
		return
	}
	switch err := disk.BackgroundSave(schedule); {
	case errors.Is(err, persistence.ErrRewriting) && schedule:
		c.Status(saveScheduled)
	case errors.Is(err, persistence.ErrRewriting):
		c.Error(ErrBgsaveRewriting)
	default:
		started(c, err, "Background saving started")
	}
}

func rewrite(c *command.Call, disk *persistence.Disk) {
	if c.Inside() {
		started(c, disk.ScheduleRewrite(), rewriteScheduled)
		return
	}
	err := disk.Rewrite()
	if errors.Is(err, persistence.ErrSaving) {
		c.Status(rewriteScheduled)
		return
	}
	started(c, err, "Background append only file rewriting started")
}

// started answers that something was started or scheduled, or why it was not.
func started(c *command.Call, err error, text string) {
	switch {
	case errors.Is(err, persistence.ErrSaving):
		c.Error(ErrSaving)
	case errors.Is(err, persistence.ErrRewriting):
		c.Error(ErrRewriting)
	case err != nil:
		c.Error("ERR %s", err)
	default:
		c.Status(text)
	}
}

func lastSave(c *command.Call, disk *persistence.Disk) {
	c.Int(c.Keys().WallNS(disk.Status().LastSaveNS) / 1e9)
}
