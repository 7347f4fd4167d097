// Package access says who acts and what they may do. A [Principal] comes from
// configuration or from a verified token, never from the arguments of a call.
package access

import (
	"fmt"
	"regexp"
	"strings"
)

// Tenant is the company a record belongs to. Another tenant's records do not
// exist for a principal. The zero value is no tenant.
type Tenant struct{ name string }

// idForm is the form of tenants and principal ids: printable ASCII without
// spaces or separators that logs and addresses use, 1 to 80 characters.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,79}$`)

// ParseTenant accepts 1 to 80 letters, digits and . _ @ + -, the first a letter or digit.
func ParseTenant(s string) (Tenant, error) {
	if !idForm.MatchString(s) {
		return Tenant{}, fmt.Errorf("a tenant is 1 to 80 letters, digits or ._@+- and starts with a letter or digit")
	}
	return Tenant{s}, nil
}

// String returns the tenant's name.
func (t Tenant) String() string { return t.name }

// Kind says what sort of actor a principal is. The zero value is none.
type Kind struct{ name string }

var (
	// Agent is a model that proposes. It can not hold the scopes that are a person's.
	Agent = Kind{"agent"}
	// Human is a person.
	Human = Kind{"human"}
	// Service is another program.
	Service = Kind{"service"}
)

// ParseKind accepts agent, human and service.
func ParseKind(s string) (Kind, error) {
	for _, k := range []Kind{Agent, Human, Service} {
		if k.name == s {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("a kind of principal is agent, human or service")
}

// String returns agent, human or service.
func (k Kind) String() string { return k.name }

// Plan is what the tenant pays for. Plans are ordered.
type Plan uint8

// The plans, lowest first. The zero value, Free, needs nothing.
const (
	Free Plan = iota
	Growth
	Pro
)

var planNames = [...]string{"free", "growth", "pro"}

// ParsePlan accepts free, growth and pro.
func ParsePlan(s string) (Plan, error) {
	for i, n := range planNames {
		if n == s {
			return Plan(i), nil
		}
	}
	return 0, fmt.Errorf("a plan is free, growth or pro")
}

// String returns free, growth or pro.
func (p Plan) String() string { return planNames[p] }

// Scope is one permission. Only the values below exist; the zero value is no scope.
type Scope struct{ bit uint8 }

// scopeNames is the closed list of scopes; a scope is its position here plus one.
var scopeNames = [...]string{
	"customer:read", "customer:pii", "customer:any",
	"refund:read", "refund:write",
	"order:read",
	"invoice:read", "invoice:route", "invoice:override",
	"ticket:create", "knowledge:read",
	"return:read", "return:write", "exchange:write",
	"approval:read", "approve:vote",
	"control:halt", "control:rules",
	"principal:delegate",
}

// The scopes that tools and use cases name.
var (
	CustomerRead      = mustScope("customer:read")
	RefundRead        = mustScope("refund:read")
	RefundWrite       = mustScope("refund:write")
	InvoiceRead       = mustScope("invoice:read")
	InvoiceRoute      = mustScope("invoice:route")
	InvoiceOverride   = mustScope("invoice:override")
	ControlRules      = mustScope("control:rules")
	PrincipalDelegate = mustScope("principal:delegate")
)

func mustScope(name string) Scope {
	s, err := ParseScope(name)
	if err != nil {
		panic(err)
	}
	return s
}

// ParseScope finds a scope of the closed list by its name.
func ParseScope(name string) (Scope, error) {
	for i, n := range scopeNames {
		if n == name {
			return Scope{uint8(i + 1)}, nil
		}
	}
	return Scope{}, fmt.Errorf("%q is no scope; the scopes are %s", name, strings.Join(scopeNames[:], ", "))
}

// String returns the scope's name, for example refund:write.
func (s Scope) String() string {
	if s.bit == 0 {
		return ""
	}
	return scopeNames[s.bit-1]
}

// neverAgents reports whether an agent may never hold s: with it an agent could
// decide on its own proposals, or act as somebody who may.
func (s Scope) neverAgents() bool {
	n := s.String()
	return n == "invoice:override" || s == PrincipalDelegate || strings.HasPrefix(n, "approve:") || strings.HasPrefix(n, "control:")
}

// Scopes is a set of scopes. The zero value is empty.
type Scopes struct{ bits uint64 }

// ScopesOf returns the set of the scopes given.
func ScopesOf(scopes ...Scope) Scopes {
	var s Scopes
	for _, x := range scopes {
		if x.bit != 0 {
			s.bits |= 1 << x.bit
		}
	}
	return s
}

// AgentScopes is every scope that a principal of kind agent may hold.
func AgentScopes() Scopes {
	var s Scopes
	for i := range scopeNames {
		x := Scope{uint8(i + 1)}
		if !x.neverAgents() {
			s.bits |= 1 << x.bit
		}
	}
	return s
}

// Has reports whether s is in the set.
func (s Scopes) Has(x Scope) bool { return x.bit != 0 && s.bits&(1<<x.bit) != 0 }

// List returns the scopes in the order of the closed list.
func (s Scopes) List() []Scope {
	var l []Scope
	for i := range scopeNames {
		if x := (Scope{uint8(i + 1)}); s.Has(x) {
			l = append(l, x)
		}
	}
	return l
}

// Principal is who acts. Make one with [NewPrincipal].
type Principal struct {
	tenant Tenant
	id     string
	kind   Kind
	scopes Scopes
	plan   Plan
	owner  string
}

// NewPrincipal refuses an id or owner out of form and scopes that the kind may
// not hold: invoice:override, approve:*, control:* and principal:delegate are
// never an agent's.
// The owner, a human's id or empty, is who answers for an agent.
func NewPrincipal(tenant Tenant, id string, kind Kind, scopes Scopes, plan Plan, owner string) (Principal, error) {
	switch {
	case tenant == Tenant{}:
		return Principal{}, fmt.Errorf("a principal belongs to a tenant")
	case CheckID(id) != nil:
		return Principal{}, CheckID(id)
	case kind == Kind{}:
		return Principal{}, fmt.Errorf("a principal has a kind: agent, human or service")
	case plan > Pro:
		return Principal{}, fmt.Errorf("a plan is free, growth or pro")
	case owner != "" && !idForm.MatchString(owner):
		return Principal{}, fmt.Errorf("a principal's owner is 1 to 80 letters, digits or ._@+- and starts with a letter or digit")
	case owner != "" && kind != Agent:
		return Principal{}, fmt.Errorf("only a principal of kind agent has an owner")
	}
	if f := Forbidden(kind, scopes); len(f) > 0 {
		return Principal{}, fmt.Errorf("the scope %s can not be held by a principal of kind %s", f[0], kind)
	}
	return Principal{tenant, id, kind, scopes, plan, owner}, nil
}

// CheckID says what is wrong with a principal's id, or nothing.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("a principal's id is 1 to 80 letters, digits or ._@+- and starts with a letter or digit")
	}
	return nil
}

// Forbidden names the scopes that a principal of the kind may not hold.
func Forbidden(kind Kind, scopes Scopes) []string {
	var names []string
	for _, s := range scopes.List() {
		if kind == Agent && s.neverAgents() {
			names = append(names, s.String())
		}
	}
	return names
}

// Tenant returns the tenant the principal acts for.
func (p Principal) Tenant() Tenant { return p.tenant }

// ID returns the principal's id, unique within its tenant.
func (p Principal) ID() string { return p.id }

// Kind returns agent, human or service.
func (p Principal) Kind() Kind { return p.kind }

// Scopes returns what the principal may do.
func (p Principal) Scopes() Scopes { return p.scopes }

// Plan returns the tenant's plan.
func (p Principal) Plan() Plan { return p.plan }

// Owner returns the human who answers for an agent, or "".
func (p Principal) Owner() string { return p.owner }

// Denied says which scope or plan a principal lacks. It is no fault: the
// request never reached the rules.
type Denied struct {
	// Scope is the missing scope, or the zero value when the plan is what is missing.
	Scope Scope
	// Plan is the lowest plan that would do.
	Plan Plan
}

// Reason returns scope or plan.
func (d *Denied) Reason() string {
	if d.Scope != (Scope{}) {
		return "scope"
	}
	return "plan"
}

// Error says what is missing, in a sentence for the caller.
func (d *Denied) Error() string {
	if d.Scope != (Scope{}) {
		return fmt.Sprintf("The scope %s is needed to use this tool.", d.Scope)
	}
	return fmt.Sprintf("Upgrade to %s plan to use this tool.", strings.ToUpper(d.Plan.String()))
}

// Permit returns nil if the principal holds the scope and its tenant's plan is
// at least the one given, else a [*Denied]; the scope is looked at first.
func Permit(p Principal, scope Scope, plan Plan) error {
	if !p.scopes.Has(scope) {
		return &Denied{Scope: scope}
	}
	if p.plan < plan {
		return &Denied{Plan: plan}
	}
	return nil
}

// PermitAny is [Permit] where any of the scopes will do. Without one of them it
// is the first that is missing.
func PermitAny(p Principal, plan Plan, scopes ...Scope) error {
	for _, s := range scopes {
		if p.scopes.Has(s) {
			return Permit(p, s, plan)
		}
	}
	return &Denied{Scope: append(scopes, Scope{})[0]}
}
