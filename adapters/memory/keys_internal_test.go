package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

func inScope(t *testing.T, principal, text string) scope {
	t.Helper()
	key, err := operation.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return scope{principal, key}
}

// Keys whose hashes are equal are told apart, whatever becomes of the others.
func TestKeysWithOneHash(t *testing.T) {
	all := []scope{inScope(t, "a", "k"), inScope(t, "b", "k"), inScope(t, "a", "l")}
	for freed := range all {
		var k keys
		k.init()
		k.hash = func(scope) uint64 { return 7 }
		claims := make([]*claim, len(all))
		for i, s := range all {
			var before *ledger.Outcome
			var err error
			if claims[i], before, err = k.claim(t.Context(), s); claims[i] == nil || before != nil || err != nil {
				t.Fatalf("the key %v: %v, %v", s, before, err)
			}
		}
		k.free(claims[freed])
		for i, c := range claims {
			if i != freed {
				k.settle(c, ledger.Outcome{Command: all[i].principal + all[i].key.String(), Answer: customers.Imported{}}, nil)
			}
		}
		for i, s := range all {
			switch o := k.under(s); {
			case i == freed:
				if c, before, err := k.claim(t.Context(), s); o != nil || c == nil || before != nil || err != nil {
					t.Errorf("the freed key %v has %v, and then %v, %v", s, o, before, err)
				}
			case o == nil || o.Command != s.principal+s.key.String():
				t.Errorf("after %v was freed, %v leads to %+v", all[freed], s, o)
			}
		}
	}
}

// Who waits for another write under the key gets what it left: its outcome, or
// the key. Nobody waits longer than the call lasts.
func TestAKeyIsWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*keys, *claim)
		want func(*claim, *ledger.Outcome, error) bool
	}{
		{"it is settled", func(k *keys, c *claim) { k.settle(c, ledger.Outcome{Answer: customers.Imported{}}, nil) },
			func(c *claim, o *ledger.Outcome, err error) bool { return c == nil && o != nil && err == nil }},
		{"it is freed", (*keys).free,
			func(c *claim, o *ledger.Outcome, err error) bool { return c != nil && o == nil && err == nil }},
		{"it goes on", nil,
			func(c *claim, o *ledger.Outcome, err error) bool {
				return c == nil && o == nil && errors.Is(err, context.Canceled)
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k keys
				k.init()
				s := inScope(t, "a", "k")
				first, _, _ := k.claim(t.Context(), s)
				ctx, stop := context.WithCancel(t.Context())
				got := make(chan bool, 1)
				go func() { got <- tt.want(k.claim(ctx, s)) }()
				synctest.Wait()
				select {
				case <-got:
					t.Fatal("it did not wait")
				default:
				}
				if tt.end != nil {
					tt.end(&k, first)
				} else {
					stop()
				}
				if !<-got {
					t.Error("it got something else")
				}
				stop()
			})
		})
	}
}
