package jsontree

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Decode fills the struct that into points to and returns everything that is
// wrong. Names are compared exactly, a name that no field carries in its json
// tag is a problem, and null stands for nothing. A field of type *Node takes
// any value as it is; absent members leave their fields alone.
func (n *Node) Decode(into any) []*Problem {
	var d decoder
	d.value(n, reflect.ValueOf(into).Elem(), "")
	return d.problems
}

type decoder struct{ problems []*Problem }

func (d *decoder) add(at Place, path, format string, args ...any) {
	d.problems = append(d.problems, &Problem{at, path, fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *Node, dst reflect.Value, path string) {
	if dst.Type() == reflect.TypeFor[*Node]() {
		dst.Set(reflect.ValueOf(n))
		return
	}
	want := map[reflect.Kind]Kind{
		reflect.Struct: Object, reflect.Map: Object, reflect.Slice: Array,
		reflect.String: String, reflect.Bool: Bool, reflect.Int: Number,
	}
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if k := want[dst.Kind()]; n.Kind != k {
		d.add(n.At, path, "must be %s, not %s", k, n.Kind)
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		d.object(n, dst, path)
	case reflect.Map:
		dst.Set(reflect.MakeMap(dst.Type()))
		for _, m := range n.Members {
			v := reflect.New(dst.Type().Elem()).Elem()
			d.value(m.Value, v, join(path, m.Name))
			dst.SetMapIndex(reflect.ValueOf(m.Name), v)
		}
	case reflect.Slice:
		dst.Set(reflect.MakeSlice(dst.Type(), len(n.Elements), len(n.Elements)))
		for i, e := range n.Elements {
			d.value(e, dst.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.String:
		dst.SetString(n.Text)
	case reflect.Bool:
		dst.SetBool(n.Raw == "true")
	case reflect.Int:
		i, err := strconv.Atoi(n.Raw)
		if err != nil {
			d.add(n.At, path, "must be an integer, not %s", n.Raw)
		}
		dst.SetInt(int64(i))
	}
}

func (d *decoder) object(n *Node, dst reflect.Value, path string) {
	var names []string
	fields := map[string]int{}
	for i := range dst.NumField() {
		if name := dst.Type().Field(i).Tag.Get("json"); name != "" {
			fields[name] = i
			names = append(names, name)
		}
	}
	for _, m := range n.Members {
		i, ok := fields[m.Name]
		if !ok {
			d.add(m.At, join(path, m.Name), "unknown field %q; there are %s", m.Name, strings.Join(names, ", "))
			continue
		}
		d.value(m.Value, dst.Field(i), join(path, m.Name))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
