package restwire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// Append appends a document as JSON, so that [strictjson.Decoder] reads the
// same struct back: a nil pointer is a member left out, and no other option
// exists. It panics on a type that the decoder would not read.
func Append(b []byte, document any) []byte {
	v := reflect.ValueOf(document)
	return encoderOf(v.Type())(b, v)
}

type encoder func([]byte, reflect.Value) []byte

var encoders sync.Map // reflect.Type -> encoder

func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder)
	}
	e := compile(t)
	encoders.Store(t, e)
	return e
}

func compile(t reflect.Type) encoder {
	if t == reflect.TypeFor[json.RawMessage]() {
		return func(b []byte, v reflect.Value) []byte { return append(b, v.Bytes()...) }
	}
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return strictjson.AppendString(b, v.String()) }
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.Pointer:
		element := encoderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte { return element(b, v.Elem()) }
	case reflect.Slice:
		element := encoderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte {
			b = append(b, '[')
			for i := range v.Len() {
				if i > 0 {
					b = append(b, ',')
				}
				b = element(b, v.Index(i))
			}
			return append(b, ']')
		}
	case reflect.Struct:
		return compileStruct(t)
	}
	panic(fmt.Sprintf("restwire: no encoding for the type %s", t))
}

func compileStruct(t reflect.Type) encoder {
	type member struct {
		index    int
		name     []byte // quoted, with the colon
		optional bool
		encode   encoder
	}
	var members []member
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := f.Type.Kind() == reflect.Pointer || f.Type == reflect.TypeFor[json.RawMessage]()
		members = append(members, member{i, append(strictjson.AppendString(nil, name), ':'), optional, encoderOf(f.Type)})
	}
	return func(b []byte, v reflect.Value) []byte {
		b = append(b, '{')
		first := true
		for i := range members {
			m := &members[i]
			value := v.Field(m.index)
			if m.optional && value.IsNil() {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = m.encode(append(b, m.name...), value)
		}
		return append(b, '}')
	}
}
