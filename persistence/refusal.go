package persistence

// Refusal returns why no decision may be made: with Always, the last write failed, or the file is not in place. nil: decisions may be made.
func (d *Disk) Refusal() error {
	if !d.Synchronous() {
		return nil
	}
	return d.aof.failing()
}

// OnRefusal calls f now, and whenever Refusal may have changed. refused: there is a Refusal.
func (d *Disk) OnRefusal(f func(refused bool)) {
	d.telling.Lock()
	d.onRefusal = f
	d.telling.Unlock()
	d.tellRefusal()
}

// tellRefusal calls onRefusal. It must follow each change that Refusal depends on. It reads and tells under one lock, so that the last call
// tells the current state.
func (d *Disk) tellRefusal() {
	d.telling.Lock()
	defer d.telling.Unlock()
	if d.onRefusal != nil {
		d.onRefusal(d.Refusal() != nil)
	}
}
