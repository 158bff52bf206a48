package persistence

// AllowFlush says why the keys may not all be removed now, if so. With Always that they are is on the disk before anybody is
// told, or is taken back where it cannot be written, and this cannot be taken back. So whether the file can be written is
// tried first, by a stamp. A disk that fails between the two leaves no key and -MISCONF for a reply; the file has
// the keys until it is rewritten, which is as soon as it can be written again.
func (d *Disk) AllowFlush() error {
	if !d.Synchronous() || !d.aof.active.Load() {
		return nil
	}
	err := d.aof.append(nil, true)
	d.aof.note(err)
	return err
}
