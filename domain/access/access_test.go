package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/access"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var acme = must(access.ParseTenant("acme"))

func scope(name string) access.Scope { return must(access.ParseScope(name)) }

// everyScope lists the closed list as a set holds it.
func everyScope() []access.Scope {
	var all []access.Scope
	for _, name := range strings.Split("customer:read customer:pii customer:any refund:read refund:write order:read "+
		"invoice:read invoice:route invoice:override ticket:create knowledge:read return:read return:write exchange:write "+
		"approval:read approve:vote control:halt control:rules principal:delegate", " ") {
		all = append(all, scope(name))
	}
	return all
}

func TestParseTenant(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		ok   bool
	}{
		{"a word", "acme", true},
		{"one character", "a", true},
		{"an address", "ops+eu@acme-corp.example", true},
		{"eighty characters", strings.Repeat("a", 80), true},
		{"eighty-one are too many", strings.Repeat("a", 81), false},
		{"nothing is no tenant", "", false},
		{"a separator of keys and paths", "acme/eu", false},
		{"a way up in a path", "../acme", false},
		{"a space around it", "acme ", false},
		{"a line end after it", "acme\n", false},
		{"a look-alike letter", "аcme", false},
		{"a percent sign", "a%2f", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := access.ParseTenant(tt.text)
			if (err == nil) != tt.ok || tt.ok && got.String() != tt.text || !tt.ok && got != (access.Tenant{}) {
				t.Fatalf("%q gave %q, %v", tt.text, got, err)
			}
			if _, err := access.NewPrincipal(acme, tt.text, access.Service, access.Scopes{}, access.Free, ""); (err == nil) != tt.ok {
				t.Fatalf("as the id of a principal %q gave %v", tt.text, err)
			}
		})
	}
}

func TestNewPrincipal(t *testing.T) {
	none := access.Scopes{}
	for _, tt := range []struct {
		name   string
		tenant access.Tenant
		kind   access.Kind
		scopes access.Scopes
		owner  string
		ok     bool
	}{
		{"an agent with all that an agent may hold", acme, access.Agent, access.AgentScopes(), "", true},
		{"an agent with an owner", acme, access.Agent, none, "lee", true},
		{"a human may override", acme, access.Human, access.ScopesOf(access.InvoiceOverride), "", true},
		{"a service may delegate", acme, access.Service, access.ScopesOf(access.PrincipalDelegate), "", true},

		{"without a tenant", access.Tenant{}, access.Human, none, "", false},
		{"without a kind", acme, access.Kind{}, none, "", false},
		{"only an agent has an owner", acme, access.Human, none, "lee", false},
		{"an owner out of form", acme, access.Agent, none, "lee or dana", false},
		{"an agent never overrides", acme, access.Agent, access.ScopesOf(access.RefundWrite, access.InvoiceOverride), "", false},
		{"an agent never votes", acme, access.Agent, access.ScopesOf(scope("approve:vote")), "", false},
		{"an agent never stops or lifts a control", acme, access.Agent, access.ScopesOf(scope("control:halt")), "", false},
		{"an agent never changes the rules", acme, access.Agent, access.ScopesOf(scope("control:rules")), "", false},
		{"an agent never acts as somebody else", acme, access.Agent, access.ScopesOf(access.PrincipalDelegate), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := access.NewPrincipal(tt.tenant, "bot", tt.kind, tt.scopes, access.Pro, tt.owner)
			switch {
			case (err == nil) != tt.ok:
				t.Fatalf("got %v", err)
			case err != nil && p != (access.Principal{}):
				t.Fatalf("it was refused and still gave %+v", p)
			case err == nil && (p.Tenant() != tt.tenant || p.ID() != "bot" || p.Kind() != tt.kind || p.Scopes() != tt.scopes || p.Plan() != access.Pro || p.Owner() != tt.owner):
				t.Fatalf("got %+v", p)
			}
		})
	}
}

func TestAgentScopesAreWhatAnAgentMayHold(t *testing.T) {
	for _, s := range everyScope() {
		_, err := access.NewPrincipal(acme, "bot", access.Agent, access.ScopesOf(s), access.Free, "")
		if (err == nil) != access.AgentScopes().Has(s) {
			t.Errorf("%s: in the set %t, alone %v", s, access.AgentScopes().Has(s), err)
		}
	}
}

func TestScopesAreASet(t *testing.T) {
	all := everyScope()
	if got := access.ScopesOf(all...).List(); len(got) != len(all) {
		t.Fatalf("%d of %d scopes: %v", len(got), len(all), got)
	}
	for i, s := range all {
		one := access.ScopesOf(s, s)
		for j, x := range all {
			if one.Has(x) != (i == j) {
				t.Errorf("the set of %s has %s: %t", s, x, one.Has(x))
			}
		}
		if l := one.List(); len(l) != 1 || l[0] != s {
			t.Errorf("the set of %s lists %v", s, l)
		}
	}
	if access.ScopesOf(access.Scope{}) != (access.Scopes{}) || access.ScopesOf(all...).Has(access.Scope{}) {
		t.Error("no scope is a member of a set")
	}
	for _, name := range []string{"", "refund", "refund:*", "REFUND:WRITE", "refund:write ", "approve:*"} {
		if s, err := access.ParseScope(name); err == nil {
			t.Errorf("%q is no scope and gave %s", name, s)
		}
	}
}

func TestPermit(t *testing.T) {
	principal := func(plan access.Plan, scopes ...access.Scope) access.Principal {
		return must(access.NewPrincipal(acme, "bot", access.Agent, access.ScopesOf(scopes...), plan, ""))
	}
	for _, tt := range []struct {
		name      string
		principal access.Principal
		scope     access.Scope
		plan      access.Plan
		reason    string // "": permitted
		message   string
	}{
		{"the scope and the plan", principal(access.Growth, access.RefundWrite), access.RefundWrite, access.Growth, "", ""},
		{"a higher plan will do", principal(access.Pro, access.RefundWrite), access.RefundWrite, access.Growth, "", ""},
		{"free needs no plan", principal(access.Free, access.RefundWrite), access.RefundWrite, access.Free, "", ""},
		{"a lower plan will not", principal(access.Growth, access.RefundWrite), access.RefundWrite, access.Pro, "plan", "Upgrade to PRO plan to use this tool."},
		{"reading is not writing", principal(access.Pro, access.RefundRead), access.RefundWrite, access.Free, "scope", "The scope refund:write is needed to use this tool."},
		{"the scope is looked at first", principal(access.Free), access.RefundWrite, access.Pro, "scope", "The scope refund:write is needed to use this tool."},
		{"nobody may do nothing", access.Principal{}, access.CustomerRead, access.Free, "scope", "The scope customer:read is needed to use this tool."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := access.Permit(tt.principal, tt.scope, tt.plan)
			if tt.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			denied, ok := errors.AsType[*access.Denied](err)
			if !ok || denied.Reason() != tt.reason || denied.Error() != tt.message {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// Any of the scopes will do; without all of them the first is missing.
func TestPermitAny(t *testing.T) {
	for _, tt := range []struct {
		plan  access.Plan
		has   access.Scope
		wants []access.Scope
		want  string
	}{
		{access.Free, access.RefundRead, []access.Scope{access.RefundRead, access.RefundWrite}, ""},
		{access.Free, access.RefundWrite, []access.Scope{access.RefundRead, access.RefundWrite}, ""},
		{access.Free, access.CustomerRead, []access.Scope{access.RefundRead, access.RefundWrite}, "scope: The scope refund:read is needed to use this tool."},
		{access.Pro, access.RefundWrite, []access.Scope{access.RefundRead, access.RefundWrite}, "plan: Upgrade to PRO plan to use this tool."},
	} {
		who := must(access.NewPrincipal(acme, "bot", access.Agent, access.ScopesOf(tt.has), access.Free, ""))
		got := ""
		if d, ok := errors.AsType[*access.Denied](access.PermitAny(who, tt.plan, tt.wants...)); ok {
			got = d.Reason() + ": " + d.Error()
		}
		if got != tt.want {
			t.Errorf("%v of %v on %s: %q, want %q", tt.has, tt.wants, tt.plan, got, tt.want)
		}
	}
}

func TestNoScopePermitsNothing(t *testing.T) {
	everything := must(access.NewPrincipal(acme, "lee", access.Human, access.ScopesOf(everyScope()...), access.Pro, ""))
	if access.Permit(everything, access.Scope{}, access.Free) == nil || access.PermitAny(everything, access.Free) == nil || access.PermitAny(everything, access.Free, access.Scope{}) == nil {
		t.Fatal("a tool that forgot its scope is open")
	}
}

func TestAPlanThatDoesNotExistIsRefused(t *testing.T) {
	if _, err := access.NewPrincipal(acme, "lee", access.Human, access.Scopes{}, access.Pro+1, ""); err == nil {
		t.Fatal("a plan above the highest passes every check of a plan")
	}
}

func TestNamesReadBack(t *testing.T) {
	for _, k := range []access.Kind{access.Agent, access.Human, access.Service} {
		if back, err := access.ParseKind(k.String()); back != k || err != nil {
			t.Errorf("%s reads back as %s, %v", k, back, err)
		}
	}
	for _, p := range []access.Plan{access.Free, access.Growth, access.Pro} {
		if back, err := access.ParsePlan(p.String()); back != p || err != nil {
			t.Errorf("%s reads back as %s, %v", p, back, err)
		}
	}
	for _, s := range everyScope() {
		if back, err := access.ParseScope(s.String()); back != s || err != nil {
			t.Errorf("%s reads back as %s, %v", s, back, err)
		}
	}
	if _, err := access.ParseKind("Agent"); err == nil {
		t.Error("a kind is written in lower case")
	}
	if _, err := access.ParsePlan("PRO"); err == nil {
		t.Error("a plan is written in lower case")
	}
}
