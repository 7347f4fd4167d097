package portstest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/refunds"
)

// concurrencyLaws are about what many callers see at once.
func concurrencyLaws(law add) {
	law("every history of refunds, repeats and reads has an order in which each is right at its moment", func(w world) {
		const rounds, clients, calls, accounts = 4, 6, 12, 2
		for round := range rounds {
			var ids [accounts]customers.ID
			for n := range ids {
				ids[n] = w.opened(round*accounts+n, opened)
			}
			histories := make([][]porcupine.Operation, clients)
			began := time.Now()
			atOnce(clients, func(client int) {
				for range calls {
					in := call{account: rand.N(accounts), key: -1}
					switch rand.N(4) {
					case 0:
						in.read = true
					case 1: // a key that others use too, for the same request
						in.key = rand.N(keys)
						in.minor = int64(10 + in.key)
					default:
						in.minor = int64(1 + rand.N(30))
					}
					at := time.Since(began)
					out, err := w.call(in, round, ids[in.account])
					if err != nil {
						w.Errorf("%+v: %v", in, err)
						return
					}
					histories[client] = append(histories[client], porcupine.Operation{
						ClientId: client, Input: in, Output: out, Call: int64(at), Return: int64(time.Since(began)),
					})
				}
			})
			var all []porcupine.Operation
			for _, h := range histories {
				all = append(all, h...)
			}
			if got := porcupine.CheckOperationsTimeout(oneByOne, all, 30*time.Second); got != porcupine.Ok {
				w.Errorf("round %d is not linearizable (%s):", round, got)
				for _, op := range all {
					w.Logf("%8d-%8d %s", op.Call, op.Return, oneByOne.DescribeOperation(op.Input, op.Output))
				}
				return
			}
		}
		w.proved()
	})
}

const (
	opened = 200 // cents on each account: enough for some refunds, too little for all
	keys   = 3   // that the clients share, for each account
)

// call is one call on one account: a read, or a refund, under a shared key or
// one of its own (-1).
type call struct {
	account int
	read    bool
	minor   int64
	key     int
}

// answer is what came of a call.
type answer struct {
	refused, replayed bool
	balance, number   int64
}

// call makes the call.
func (w world) call(in call, round int, c customers.ID) (answer, error) {
	if in.read {
		v, err := w.Load(w.ctx, w.tenant, c.Ref())
		if err != nil {
			return answer{}, err
		}
		a, _ := ledger.Get[customers.Account](v, c.Ref())
		return answer{balance: a.Balance().Minor(), number: a.Version()}, nil
	}
	k := key()
	if in.key >= 0 {
		k = fmt.Sprintf("shared-%d-%d-%d", round, in.account, in.key)
	}
	o, err := w.do(k, refund(c, in.minor))
	switch {
	case faultOf(err) == "POLICY_VIOLATION/balance_exceeded":
		return answer{refused: true}, nil
	case err != nil:
		return answer{}, err
	}
	r := o.Answer.(refunds.Refund)
	return answer{replayed: o.Replayed, balance: r.Remaining.Minor(), number: r.Number}, nil
}

// books is one account as a ledger that does one thing at a time would have it:
// what is left, the last entry, and what each shared key led to.
type books struct {
	balance, number int64
	done            [keys]answer
}

var oneByOne = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, op := range history {
			n := op.Input.(call).account
			parts[n] = append(parts[n], op)
		}
		var all [][]porcupine.Operation
		for _, p := range parts {
			all = append(all, p)
		}
		return all
	},
	Init: func() any { return books{balance: opened, number: 1} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(books), input.(call), output.(answer)
		if in.read {
			return out == answer{balance: s.balance, number: s.number}, s
		}
		if in.key >= 0 && s.done[in.key] != (answer{}) {
			return out == s.done[in.key], s
		}
		if in.minor > s.balance {
			return out == answer{refused: true}, s
		}
		s.balance, s.number = s.balance-in.minor, s.number+1
		if in.key >= 0 {
			s.done[in.key] = answer{replayed: true, balance: s.balance, number: s.number}
		}
		return out == answer{balance: s.balance, number: s.number}, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}
