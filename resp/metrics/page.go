package metrics

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fill sets the fields of page, a pointer to a struct, that metrics name by the names in its json tags. Metrics of one name are added up.
// Fields of a struct whose pointer is nil are left out.
func Fill(page any, list []Metric) {
	for i := range list {
		if m := &list[i]; m.JSON != "" {
			if field := find(reflect.ValueOf(page), strings.Split(m.JSON, ".")); field.IsValid() {
				m.fill(field)
			}
		}
	}
}

// find returns the field that names lead to. It is not valid where there is none.
func find(v reflect.Value, names []string) reflect.Value {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case len(names) == 0:
		return v
	case v.Kind() != reflect.Struct: // a pointer was nil
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == names[0] {
			return find(v.Field(i), names[1:])
		}
	}
	return reflect.Value{}
}

func (m *Metric) fill(field reflect.Value) {
	switch v := m.Value.(type) {
	case string:
		field.SetString(v)
	case Failed:
		field.SetBool(bool(v))
	case *Histogram:
		field.SetInt(field.Int() + int64(v.Count))
	case time.Time:
		if !v.IsZero() {
			field.SetInt(v.UnixMilli())
		}
	case time.Duration:
		field.SetInt(v.Milliseconds())
	default:
		field.SetInt(field.Int() + int64(m.number()))
	}
}

// Printable is a text as it is, or with what cannot be printed written as in Go. That also keeps a key from turning the text around it.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
