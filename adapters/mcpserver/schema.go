package mcpserver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// inputSchema derives the schema of a tool's arguments from its struct: names
// and presence from the json tag and the pointer, words from the jsonschema tag,
// rules from the validate tag.
func inputSchema[T any]() *jsonschema.Schema { return objectSchema(reflect.TypeFor[T](), true) }

// outputSchema derives the schema of a tool's answer: an enum tag lists the
// values that a text can have.
func outputSchema[T any]() *jsonschema.Schema { return objectSchema(reflect.TypeFor[T](), false) }

func objectSchema(t reflect.Type, input bool) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		Required:             []string{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, // encodes as false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := typeSchema(f.Type, input)
		p.Description = f.Tag.Get("jsonschema")
		if p.Description == "" {
			panic(fmt.Sprintf("the field %s of %s has no jsonschema tag to describe it", f.Name, t))
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			for v := range strings.SplitSeq(enum, ",") {
				p.Enum = append(p.Enum, v)
			}
		}
		if input {
			addKeywords(p, f)
		}
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
		if f.Type.Kind() != reflect.Pointer {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

func typeSchema(t reflect.Type, input bool) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[strictjson.Number]() || t == reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	case t.Kind() == reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case t.Kind() == reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: typeSchema(t.Elem(), input)}
	case t.Kind() == reflect.Struct:
		return objectSchema(t, input)
	}
	panic(fmt.Sprintf("no schema for the type %s", t))
}
