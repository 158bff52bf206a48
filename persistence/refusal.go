package persistence

// Refusal is why no decision may be made: with Always, that the last write has failed, or that the file is not in its place.
func (d *Disk) Refusal() error {
	if !d.Synchronous() {
		return nil
	}
	return d.aof.failing()
}

// OnRefusal has f called with whether there is a Refusal: now, and whenever that may have changed.
func (d *Disk) OnRefusal(f func(refused bool)) {
	d.telling.Lock()
	d.onRefusal = f
	d.telling.Unlock()
	d.tellRefusal()
}

// tellRefusal is called by whoever changes what Refusal goes by. Under the lock, so that who is last tells what is so.
func (d *Disk) tellRefusal() {
	d.telling.Lock()
	defer d.telling.Unlock()
	if d.onRefusal != nil {
		d.onRefusal(d.Refusal() != nil)
	}
}
