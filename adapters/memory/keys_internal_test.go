package memory

import (
	"testing"

	"github.com/refundledger/refundledger/domain/operation"
)

// Keys whose hashes are equal are told apart, and one that is freed leaves the
// others.
func TestKeysWithOneHash(t *testing.T) {
	const hash = 7
	of := func(principal, text string) scope {
		key, err := operation.ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		return scope{principal, key}
	}
	all := []scope{of("a", "k"), of("b", "k"), of("a", "l")}
	for freed := range all {
		var last *claim
		claims := make([]*claim, len(all))
		for i, s := range all {
			claims[i] = &claim{scope: s, next: last}
			last = claims[i]
		}
		p := &keysPart{first: map[uint64]*claim{hash: last}}
		p.free(hash, claims[freed])
		for i, s := range all {
			want := claims[i]
			if i == freed {
				want = nil
			}
			if got := p.first[hash].of(s); got != want {
				t.Errorf("after %v was freed, %v leads to %+v", all[freed], s, got)
			}
		}
	}
	p := &keysPart{first: map[uint64]*claim{hash: {scope: all[0]}}}
	p.free(hash, p.first[hash])
	if len(p.first) != 0 {
		t.Errorf("%d hashes stay when no key is left", len(p.first))
	}
}
