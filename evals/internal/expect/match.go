// Package expect compares what a server answered with what a case expects.
//
// A deep subset: the members that are expected must be there and match, others
// may be there too; arrays have the same length; numbers are compared by what
// they are worth, exactly. Operators, alone in an object:
//
//	{"$matches": "^…$"}  a string that the pattern matches
//	{"$any": true}       any value, but there is one
//	{"$absent": true}    no such member
//	{"$not": value}      anything that does not match value
//
// A string "$name" is a variable: it takes the first value it meets and stands
// for that value from then on.
package expect

import (
	"fmt"
	"regexp"

	"github.com/refundledger/refundledger/evals/internal/jsontree"
	"github.com/refundledger/refundledger/evals/internal/trajectory"
)

// Mismatch says what was expected and what came instead.
type Mismatch struct{ Want, Got string }

// Error returns "want …, got …".
func (m *Mismatch) Error() string { return "want " + m.Want + ", got " + m.Got }

func differ(want, format string, args ...any) error {
	return &Mismatch{want, fmt.Sprintf(format, args...)}
}

// Variables are the values that "$name" stands for.
type Variables map[string]*jsontree.Node

// Match returns nil if got has what want asks for, else a [*Mismatch] for the
// first difference. The path says where got stands.
func (v Variables) Match(want, got *jsontree.Node, path string) error {
	if name, arg := operator(want); name != "" {
		return v.operator(name, arg, got, path)
	}
	if got == nil {
		return differ(label(path)+brief(want), "nothing there")
	}
	if want.Kind == jsontree.String && trajectory.IsVariable(want.Text) {
		known, ok := v[want.Text]
		if !ok {
			v[want.Text] = got
			return nil
		}
		if !jsontree.Equal(known, got) {
			return differ(fmt.Sprintf("%s%s (%s)", label(path), brief(known), want.Text), "%s", brief(got))
		}
		return nil
	}
	if want.Kind != got.Kind {
		return differ(label(path)+brief(want), "%s", brief(got))
	}
	switch want.Kind {
	case jsontree.Object:
		for _, m := range want.Members {
			if err := v.Match(m.Value, got.Get(m.Name), inside(path, m.Name)); err != nil {
				return err
			}
		}
		return nil
	case jsontree.Array:
		if len(want.Elements) != len(got.Elements) {
			return differ(fmt.Sprintf("%s%d elements", label(path), len(want.Elements)), "%d: %s", len(got.Elements), brief(got))
		}
		for i, e := range want.Elements {
			if err := v.Match(e, got.Elements[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if !jsontree.Equal(want, got) {
		return differ(label(path)+brief(want), "%s", brief(got))
	}
	return nil
}

// operator returns the operator that want is, or "".
func operator(want *jsontree.Node) (string, *jsontree.Node) {
	if want.Kind != jsontree.Object || len(want.Members) != 1 || want.Members[0].Name[:min(1, len(want.Members[0].Name))] != "$" {
		return "", nil
	}
	return want.Members[0].Name, want.Members[0].Value
}

func (v Variables) operator(name string, arg, got *jsontree.Node, path string) error {
	switch name {
	case "$absent":
		if got != nil {
			return differ(label(path)+"absent", "%s", brief(got))
		}
		return nil
	case "$any":
		if got == nil {
			return differ(label(path)+"any value", "nothing there")
		}
		return nil
	case "$not":
		if got == nil {
			return differ(label(path)+"a value", "nothing there")
		}
		if v.Match(arg, got, path) == nil {
			if known, ok := v[arg.Text]; ok && arg.Kind == jsontree.String {
				arg = known
			}
			return differ(label(path)+"anything but "+brief(arg), "just that")
		}
		return nil
	case "$matches":
		re, err := regexp.Compile(arg.Str())
		if err != nil {
			return err
		}
		if got == nil || got.Kind != jsontree.String || !re.MatchString(got.Text) {
			return differ(label(path)+"a match of "+arg.Raw, "%s", brief(got))
		}
		return nil
	}
	return fmt.Errorf("%s is no operator; there are $matches, $any, $absent, $not", name)
}

func inside(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func label(path string) string {
	if path == "" {
		return ""
	}
	return path + " = "
}

// brief writes a value so that it fits in a line.
func brief(n *jsontree.Node) string {
	if n == nil {
		return "nothing there"
	}
	return Shorten(n.Compact(nil))
}

// Shorten cuts a text that is too long for a line.
func Shorten(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
}
