package config

import (
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/payables"
)

func TestTheDaemonsSettings(t *testing.T) {
	d, err := ParseDaemon(nil)
	if err != nil || d.Serving != (Serving{"127.0.0.1:3344", "refund-ledger.tokens", 512, true}) || d.Store.Backend != SQLite || d.Tolerance != payables.DefaultTolerance() {
		t.Errorf("by default %+v, %v", d, err)
	}
	d, err = ParseDaemon([]string{"LEDGERD_ADDR=0.0.0.0:80", "LEDGERD_TOKENS=/t", "LEDGERD_MAX_IN_FLIGHT=1", "LEDGER_REST_TOKEN=canary"})
	if err != nil || d.Serving != (Serving{"0.0.0.0:80", "/t", 1, false}) || d.Token != "canary" {
		t.Errorf("%+v, %v", d, err)
	}
	for _, row := range d.Shown {
		if row[0] == "LEDGER_REST_TOKEN" && row[1] != "***" {
			t.Errorf("the token is shown: %v", row)
		}
	}
	_, err = ParseDaemon([]string{"LEDGER_BACKEND=rest", "LEDGERD_ADDR=here", "LEDGERD_TOKENS=", "LEDGERD_MAX_IN_FLIGHT=0", "PAYABLES_PRICE_TOLERANCE_PERCENT=two", "PAYABLES_PRICE_TOLERANCE_MINOR=-1"})
	for _, name := range []string{"LEDGER_BACKEND", "LEDGERD_ADDR", "LEDGERD_MAX_IN_FLIGHT", "PAYABLES_PRICE_TOLERANCE_PERCENT", "PAYABLES_PRICE_TOLERANCE_MINOR"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}

// What is documented is what is shown: --help and config can not differ.
func TestEverySettingOfTheDaemonIsDocumentedAndShown(t *testing.T) {
	d, err := ParseDaemon(nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := DaemonVariables()
	if len(rows) != len(d.Shown) {
		t.Fatalf("%d are documented, %d shown", len(rows), len(d.Shown))
	}
	for i, row := range rows {
		if row.Name != d.Shown[i][0] || row.Meaning == "" {
			t.Errorf("%+v, shown as %s", row, d.Shown[i][0])
		}
	}
}
