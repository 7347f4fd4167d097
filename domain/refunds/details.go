package refunds

import (
	"encoding/json"

	"github.com/refundledger/refundledger/domain/money"
)

// BalanceExceeded are the details of the reason balance_exceeded, in major units.
type BalanceExceeded struct {
	Requested json.Number `json:"requested"`
	Available json.Number `json:"available"`
	Currency  string      `json:"currency"`
}

// AmountPrecision are the details of the reason amount_precision.
type AmountPrecision struct {
	Currency string `json:"currency"`
	Decimals int    `json:"decimals"`
}

// CurrencyMismatch are the details of the reason currency_mismatch.
type CurrencyMismatch struct {
	Requested string `json:"requested"`
	Account   string `json:"account"`
}

func number(a money.Amount) json.Number { return json.Number(a.Major()) }
