package contract

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// promise is a sentence of the contract, and what shows that it is kept.
type promise struct {
	says  string
	check func(*kit) error
}

// promises are in the order in which they are checked: the last one uses up the
// balance.
var promises = []promise{
	{"The contract is published as OpenAPI 3.1.", published},
	{"A customer is looked up with its version as a strong ETag.", func(k *kit) error { _, err := k.account(); return err }},
	{"A customer who does not exist is a problem NOT_FOUND.", unknownCustomer},
	{"Without a good token nothing is answered and nothing is done.", tokens},
	{"A refund is made once and takes its amount from the balance.", refundOnce},
	{"The same request again gets the same answer, marked, and does nothing.", replay},
	{"A used key with other fields is refused and shows nothing of what is stored.", reuse},
	{"Many requests at once under one key have one effect.", together},
	{"Without a key nothing is done.", keyless},
	{"What a key led to can be looked up.", found},
	{"What the rules refuse leaves nothing, and the key free.", refusal},
	{"A refund in another currency is refused.", otherCurrency},
	{"A stale If-Match is refused, the right one is not.", precondition},
	{"What is not exactly as declared is refused, with all that is wrong.", strict},
	{"A body beyond the limit is refused.", huge},
	{"Nothing is done after the time of a request is over.", inTime},
	{"Refunds are listed newest first, without gaps or doubles over the pages.", pages},
	{"Nobody acts for another without the right to.", delegation},
	{"Another tenant sees nothing of it.", tenants},
	{"Of many refunds at once as many succeed as the balance allows.", balance},
}

func published(k *kit) error {
	got, err := k.ask(http.MethodGet, "/openapi.json", "", "Authorization", "")
	if err != nil {
		return err
	}
	v, err := strictjson.Check(got.body)
	if err != nil || got.status != http.StatusOK {
		return fmt.Errorf("/openapi.json is answered %d, and may be no JSON", got.status)
	}
	if version, _ := v.Lookup("openapi").Text(); !strings.HasPrefix(version, "3.1") {
		return fmt.Errorf("the document is of OpenAPI %q", version)
	}
	return nil
}

func unknownCustomer(k *kit) error {
	for _, id := range []string{"CUST-99999", "CUST-99998", "CUST-98765"} {
		got, err := k.ask(http.MethodGet, "/v1/customers/"+id, "")
		if err == nil && got.status == http.StatusOK {
			continue // there is such a customer
		}
		return refused(got, err, http.StatusNotFound, "customer_not_found")
	}
	return errors.New("every customer exists")
}

func tokens(k *kit) error {
	return k.unchanged(func() error {
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong-" + k.run, "Basic " + k.token, k.token} {
			got, err := k.ask(http.MethodGet, k.path(), "", "Authorization", header)
			if err := refused(got, err, http.StatusUnauthorized); err != nil {
				return fmt.Errorf("a look-up: %w", err)
			}
			got, err = k.refund(k.key(), 1, "Authorization", header)
			if err := refused(got, err, http.StatusUnauthorized); err != nil {
				return fmt.Errorf("a refund: %w", err)
			}
		}
		return nil
	})
}

func refundOnce(k *kit) error {
	return k.moves(1, 1, func() error {
		before, err := k.account()
		if err != nil {
			return err
		}
		key := k.key()
		got, err := k.refund(key, 1)
		r, err := k.done(got, err, key, 1)
		if err == nil && (r.Remaining.Minor() != before.Balance().Minor()-1 || r.Number != before.Version()+1) {
			err = fmt.Errorf("%s remain after it at version %d; before it were %s at version %d", r.Remaining, r.Number, before.Balance(), before.Version())
		}
		return err
	})
}

func replay(k *kit) error {
	return k.moves(3, 2, func() error {
		key := k.key()
		first, err := k.refund(key, 2)
		if _, err := k.done(first, err, key, 2); err != nil {
			return err
		}
		other := k.key() // a replay is answered as it was then, whatever came after
		between, err := k.refund(other, 1)
		if _, err := k.done(between, err, other, 1); err != nil {
			return err
		}
		for range 2 {
			again, err := k.refund(key, 2)
			if err != nil {
				return err
			}
			if again.status != http.StatusOK || again.header.Get(restwire.HeaderReplayed) != "true" {
				return fmt.Errorf("the repeat is answered %s, %s: %q; want 200 and true", again.say(), restwire.HeaderReplayed, again.header.Get(restwire.HeaderReplayed))
			}
			if !bytes.Equal(again.body, first.body) {
				return errors.New("the repeat is answered otherwise than the first")
			}
		}
		return nil
	})
}

func reuse(k *kit) error {
	return k.moves(3, 1, func() error {
		key := k.key()
		first, err := k.refund(key, 3)
		r, err := k.done(first, err, key, 3)
		if err != nil {
			return err
		}
		got, err := k.refund(key, 2)
		if err := refused(got, err, http.StatusUnprocessableEntity, "operation_key_reused"); err != nil {
			return err
		}
		if strings.Contains(string(got.body), r.ID.String()) || strings.Contains(string(got.body), reason) {
			return errors.New("the refusal shows what is stored")
		}
		return nil
	})
}

func together(k *kit) error {
	return k.moves(1, 1, func() error {
		key, seen := k.key(), map[string]int{}
		k.atOnce(func() (reply, error) { return k.refund(key, 1) }, func(got reply, err error) {
			if err != nil {
				seen["no answer"]++
				return
			}
			if _, r, err := k.outcome(got, key); err == nil && got.status == http.StatusCreated {
				k.made = append(k.made, r.Number)
			}
			seen[got.say()]++
		})
		if seen["201"] != 1 || seen["201"]+seen["200"]+seen["409 "+restwire.ReasonRunning] != atOnce {
			return fmt.Errorf("the answers are %v", seen)
		}
		return nil
	})
}

// atOnce asks many times at once, and gives the answers to each one by one.
func (k *kit) atOnce(ask func() (reply, error), each func(reply, error)) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			got, err := ask()
			mu.Lock()
			defer mu.Unlock()
			each(got, err)
		})
	}
	all.Wait()
}

func keyless(k *kit) error {
	return k.unchanged(func() error {
		for _, key := range []string{"", "a key", "ä", strings.Repeat("k", 81)} {
			got, err := k.refund(key, 1)
			if err := refused(got, err, http.StatusBadRequest); err != nil {
				return fmt.Errorf("the key %q: %w", key, err)
			}
		}
		return nil
	})
}

func found(k *kit) error {
	key := k.key()
	if err := k.free(key); err != nil {
		return err
	}
	first, err := k.refund(key, 1)
	if _, err := k.done(first, err, key, 1); err != nil {
		return err
	}
	got, err := k.lookUp(key)
	if err != nil {
		return err
	}
	if got.status != http.StatusOK || !bytes.Equal(got.body, first.body) {
		return fmt.Errorf("the look-up is answered %s, and otherwise than the refund was", got.say())
	}
	return nil
}

func refusal(k *kit) error {
	return k.moves(1, 1, func() error {
		a, err := k.account()
		if err != nil {
			return err
		}
		key := k.key()
		got, err := k.refund(key, a.Balance().Minor()+1)
		if err := refused(got, err, http.StatusUnprocessableEntity, "balance_exceeded", "amount_out_of_range"); err != nil {
			return err
		}
		for _, minor := range []int64{0, -1} {
			got, err := k.refund(key, minor)
			if err := refused(got, err, http.StatusUnprocessableEntity, "amount_out_of_range"); err != nil {
				return fmt.Errorf("an amount of %d: %w", minor, err)
			}
		}
		if err := k.free(key); err != nil {
			return err
		}
		got, err = k.refund(key, 1)
		_, err = k.done(got, err, key, 1)
		return err
	})
}

func otherCurrency(k *kit) error {
	currency := "JPY"
	if k.currency == currency {
		currency = "USD"
	}
	return k.unchanged(func() error {
		got, err := k.ask(http.MethodPost, k.path()+"/refunds", k.fieldsIn("1", currency), restwire.HeaderKey, k.key())
		return refused(got, err, http.StatusUnprocessableEntity, "currency_mismatch")
	})
}

func precondition(k *kit) error {
	return k.moves(1, 1, func() error {
		a, err := k.account()
		if err != nil {
			return err
		}
		key := k.key()
		got, err := k.refund(key, 1, "If-Match", restwire.ETag(a.Version()+1))
		if err := refused(got, err, http.StatusPreconditionFailed); err != nil {
			return err
		}
		got, err = k.refund(key, 1, "If-Match", restwire.ETag(a.Version()))
		_, err = k.done(got, err, key, 1)
		return err
	})
}

func strict(k *kit) error {
	good := k.fields("1")
	return k.unchanged(func() error {
		for name, body := range map[string]string{
			"no JSON":               `{`,
			"nothing":               ``,
			"an array":              `[` + good + `]`,
			"two documents":         good + good,
			"an amount as a text":   k.fields(`"1"`),
			"a fraction":            k.fields(`1.5`),
			"null":                  k.fields(`null`),
			"an amount beyond 2^63": k.fields(`9223372036854775808`),
			"no amount":             `{"currency":"` + k.currency + `","reason":"` + reason + `"}`,
			"a member twice":        strings.Replace(good, `"currency"`, `"amountMinor":2,"currency"`, 1),
			"a member too many":     strings.Replace(good, `"currency"`, `"note":"","currency"`, 1),
			"a name in upper case":  strings.Replace(good, `"amountMinor"`, `"AMOUNTMINOR"`, 1),
			"a currency that is no": k.fieldsIn("1", "usd"),
			"a reason too short":    strings.Replace(good, reason, "short", 1),
			"not UTF-8":             strings.Replace(good, reason, reason+"\xff", 1),
			"half of a character":   strings.Replace(good, reason, reason+`\ud800`, 1),
		} {
			got, err := k.ask(http.MethodPost, k.path()+"/refunds", body, restwire.HeaderKey, k.key())
			if err := refused(got, err, http.StatusBadRequest); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if p, err := restwire.ParseProblem(got.status, got.body); err != nil || p.Fault == nil || len(p.Fault.Issues) == 0 {
				return fmt.Errorf("%s: the problem has no issues", name)
			}
		}
		two := strings.Replace(k.fields(`"1"`), reason, "short", 1)
		got, err := k.ask(http.MethodPost, k.path()+"/refunds", strings.Replace(two, `{`, `{"note":"",`, 1), restwire.HeaderKey, k.key())
		if err := refused(got, err, http.StatusBadRequest); err != nil {
			return err
		}
		if p, err := restwire.ParseProblem(got.status, got.body); err != nil || len(p.Fault.Issues) < 3 {
			return errors.New("of three problems not all are reported at once")
		}
		got, err = k.ask(http.MethodPost, k.path()+"/refunds", good, restwire.HeaderKey, k.key(), "Content-Type", "text/plain")
		return refused(got, err, http.StatusUnsupportedMediaType)
	})
}

func huge(k *kit) error {
	return k.unchanged(func() error {
		body := strings.Replace(k.fields("1"), reason, reason+strings.Repeat(" ", 2*restwire.MaxBody), 1)
		got, err := k.ask(http.MethodPost, k.path()+"/refunds", body, restwire.HeaderKey, k.key())
		if err != nil {
			return nil // it hung up: that refuses it too
		}
		return refused(got, nil, http.StatusRequestEntityTooLarge)
	})
}

func inTime(k *kit) error {
	for range atOnce {
		key := k.key()
		got, err := k.refund(key, 1, restwire.HeaderTimeout, "1")
		if err != nil {
			return err
		}
		if got.status == http.StatusGatewayTimeout {
			if err := k.free(key); err != nil {
				return err
			}
		} else if _, err := k.done(got, nil, key, 1); err != nil {
			return err
		}
	}
	return k.unchanged(func() error {
		for _, text := range []string{"0", "-1", "1.5", "soon"} {
			got, err := k.refund(k.key(), 1, restwire.HeaderTimeout, text)
			if err := refused(got, err, http.StatusBadRequest); err != nil {
				return fmt.Errorf("%s: %s: %w", restwire.HeaderTimeout, text, err)
			}
		}
		return nil
	})
}

// maxPages bounds how far the list is followed.
const maxPages = 10_000

func pages(k *kit) error {
	var numbers []int64
	cursor := ""
	for range maxPages {
		got, err := k.ask(http.MethodGet, k.path()+"/refunds?limit=3"+cursor, "")
		if err != nil {
			return err
		}
		if err := got.isJSON(); err != nil {
			return err
		}
		page, next, err := restwire.RefundPages.Read(got.body, k.tenant)
		if err != nil {
			return err
		}
		if len(page) > 3 {
			return fmt.Errorf("a page of 3 has %d rows", len(page))
		}
		for _, r := range page {
			if r.Customer != k.id {
				return errors.New("a refund of another customer is listed")
			}
			if n := len(numbers); n > 0 && r.Number >= numbers[n-1] {
				return fmt.Errorf("refund %d is listed after %d", r.Number, numbers[n-1])
			}
			numbers = append(numbers, r.Number)
		}
		if next == nil {
			for _, n := range k.made {
				if !slices.Contains(numbers, n) {
					return fmt.Errorf("refund %d was made and is not listed", n)
				}
			}
			return nil
		}
		cursor = "&cursor=" + *next
	}
	return errors.New("the pages do not end")
}

func delegation(k *kit) error {
	key := k.key()
	got, err := k.refund(key, 1)
	if _, err := k.done(got, err, key, 1); err != nil {
		return err
	}
	another := []string{restwire.HeaderPrincipal, "somebody-" + strconv.Itoa(k.keys), restwire.HeaderTool, "check"}
	got, err = k.lookUp(key, another...)
	if err == nil && got.status == http.StatusForbidden {
		return k.unchanged(func() error {
			got, err := k.refund(k.key(), 1, another...)
			return refused(got, err, http.StatusForbidden)
		})
	}
	// The token may act for others: then their keys are theirs.
	if err := refused(got, err, http.StatusNotFound, restwire.ReasonOperation); err != nil {
		return fmt.Errorf("another principal looks the key up: %w", err)
	}
	got, err = k.refund(key, 1, another...)
	r, err := k.done(got, err, key, 1)
	if err != nil {
		return err
	}
	out, _, err := k.outcome(got, key)
	if err == nil && (out.Operation.Principal != another[1] || out.Operation.Via == "" || out.Operation.Tool != another[3]) {
		err = fmt.Errorf("refund %d does not say for whom and by whom it was asked", r.Number)
	}
	return err
}

func tenants(k *kit) error {
	if k.other == "" {
		return errSkipped
	}
	key := k.key()
	got, err := k.refund(key, 1)
	if _, err := k.done(got, err, key, 1); err != nil {
		return err
	}
	as := []string{"Authorization", "Bearer " + k.other}
	got, err = k.lookUp(key, as...)
	if err := refused(got, err, http.StatusNotFound, restwire.ReasonOperation); err != nil {
		return fmt.Errorf("it looks the key up: %w", err)
	}
	got, err = k.ask(http.MethodGet, k.path(), "", as...)
	if err != nil {
		return err
	}
	if got.status == http.StatusOK { // it has a customer of the same id
		w, err := restwire.CustomerForm.Document(got.body)
		if err == nil && w.Tenant == k.tenant.String() {
			err = errors.New("it looks the customer up")
		}
		return err
	}
	if err := refused(got, nil, http.StatusNotFound, "customer_not_found"); err != nil {
		return fmt.Errorf("it looks the customer up: %w", err)
	}
	return k.unchanged(func() error {
		got, err := k.refund(k.key(), 1, as...)
		return refused(got, err, http.StatusNotFound, "customer_not_found")
	})
}

func balance(k *kit) error {
	a, err := k.account()
	if err != nil {
		return err
	}
	const most = 3 // so many fit into the balance, of atOnce that are asked for
	minor := a.Balance().Minor()/(most+1) + 1
	fit := min(a.Balance().Minor()/minor, most)
	keys := make(chan string, atOnce)
	for range atOnce {
		keys <- k.key()
	}
	return k.moves(fit*minor, fit, func() error {
		seen := map[string]int64{}
		k.atOnce(func() (reply, error) { return k.refund(<-keys, minor) }, func(got reply, err error) {
			if err != nil {
				seen["no answer"]++
				return
			}
			seen[got.say()]++
		})
		if seen["201"] != fit || seen["422 balance_exceeded"] != atOnce-fit {
			return fmt.Errorf("%d fit into the balance; the answers are %v", fit, seen)
		}
		return nil
	})
}
