package enginetest

import "slices"

const (
	never     = -1 // the expiry of a key without one
	databases = 16

	perKey, perItem = 64, 16 // bytes, beside the texts
)

// A value is a string, a hash or a list.
type value struct {
	kind    string // as TYPE answers it
	text    string
	hash    map[string]string
	fields  []string // of hash, in the order in which they came
	list    []string
	expires int64 // Unix ms, or never
	place   int   // in keyspace.names
	size    int64 // bytes
}

func (v *value) clone() *value {
	c := *v
	c.fields, c.list = slices.Clone(v.fields), slices.Clone(v.list)
	if v.hash != nil {
		c.hash = make(map[string]string, len(v.hash))
		for _, f := range v.fields {
			c.hash[f] = v.hash[f]
		}
	}
	return &c
}

// setField sets a field of a hash, and reports whether it is new.
func (v *value) setField(name, text string) bool {
	old, there := v.hash[name]
	if !there {
		v.fields = append(v.fields, name)
		v.size += int64(len(name) + perItem)
	}
	v.size += int64(len(text) - len(old))
	v.hash[name] = text
	return !there
}

func (v *value) deleteField(name string) bool {
	old, there := v.hash[name]
	if there {
		delete(v.hash, name)
		at := slices.Index(v.fields, name)
		v.fields = slices.Delete(v.fields, at, at+1)
		v.size -= int64(len(name) + perItem + len(old))
	}
	return there
}

func (v *value) setList(list []string) {
	v.list, v.size = list, 0
	for _, text := range list {
		v.size += int64(len(text) + perItem)
	}
}

// keyspace is one database.
type keyspace struct {
	values map[string]*value
	names  []string // in any order that repeats
}

// data is what a node keeps.
type data [databases]keyspace

func newData() *data {
	d := &data{}
	for i := range d {
		d[i].values = map[string]*value{}
	}
	return d
}

func (d *data) clone() *data {
	c := newData()
	for i := range d {
		for _, name := range d[i].names {
			c[i].put(name, d[i].values[name].clone())
		}
	}
	return c
}

// used is how many bytes all keys take.
func (d *data) used() (bytes int64) {
	for i := range d {
		for _, name := range d[i].names {
			bytes += int64(len(name)) + perKey + d[i].values[name].size
		}
	}
	return bytes
}

func (k *keyspace) put(name string, v *value) {
	if old := k.values[name]; old != nil {
		v.place = old.place
	} else {
		v.place = len(k.names)
		k.names = append(k.names, name)
	}
	k.values[name] = v
}

func (k *keyspace) remove(name string) bool {
	v := k.values[name]
	if v == nil {
		return false
	}
	last := k.names[len(k.names)-1]
	k.names[v.place] = last
	k.values[last].place = v.place
	k.names = k.names[:len(k.names)-1]
	delete(k.values, name)
	return true
}

func (v *value) over(nowMs int64) bool { return v.expires != never && nowMs > v.expires }

// purge removes what is over.
func (k *keyspace) purge(nowMs int64) {
	for i := len(k.names) - 1; i >= 0; i-- {
		if name := k.names[i]; k.values[name].over(nowMs) {
			k.remove(name)
		}
	}
}
