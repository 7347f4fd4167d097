package restserver

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

// apiVersion is the version of the contract, not of the program.
const apiVersion = "1.1.0"

const aboutAPI = `The system of record of Refund Ledger. The server decides, on its own records and by its own clock.

A command is a POST with an Idempotency-Key. The same key and the same fields lead to the same answer, marked Idempotent-Replayed: true; nothing happens twice. Where an answer was lost, look the key up or send the same request again.

Errors are problems (RFC 9457) with code, reason and, for some reasons, details. 409 means that the same request is still running: send it again. 422 means that it was refused and nothing has happened.`

const security = "bearer"

// routes registers every resource and returns the OpenAPI document.
func (s *Server) routes() ([]byte, error) {
	config := huma.DefaultConfig("Refund Ledger", apiVersion)
	config.Info.Description = aboutAPI
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", "" // the docs page would load scripts of others
	config.CreateHooks = nil                                             // they would add a member $schema to every document
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{security: {Type: "http", Scheme: "bearer"}}
	api := humago.New(s.mux, config)
	methods := map[string][]string{}
	add := func(op *huma.Operation, serve http.HandlerFunc) {
		api.OpenAPI().AddOperation(op)
		api.Adapter().Handle(op, func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			serve(w, r)
		})
		methods[op.Path] = append(methods[op.Path], op.Method)
	}
	registry := api.OpenAPI().Components.Schemas
	for _, c := range restwire.Commands() {
		add(commandOperation(registry, c), s.bounded(s.command(c)))
	}
	for _, r := range reads {
		add(readOperation(registry, r.Read), s.bounded(s.read(r)))
	}
	open := func(path, about string, serve http.HandlerFunc) {
		add(&huma.Operation{
			OperationID: strings.Trim(path, "/"), Method: http.MethodGet, Path: path, Summary: about, Security: []map[string][]string{},
			Responses: map[string]*huma.Response{"default": {Description: "No data."}},
		}, serve)
	}
	open("/healthz", "Whether the server lives", s.health)
	open("/readyz", "Whether the server can answer", s.ready)
	open("/openapi.json", "This document", s.openAPI)
	for path, allowed := range methods {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.fail(w, refuse(http.StatusMethodNotAllowed, fault.InvalidInput, restwire.ReasonMethod, "The resource has the methods %s.", strings.Join(allowed, ", ")))
		})
	}
	s.mux.HandleFunc("/", s.noResource)
	registry.Map()[reflect.TypeFor[restwire.Problem]().Name()].AdditionalProperties = true // as RFC 9457 has it
	return indent(api.OpenAPI())
}

func commandOperation(registry huma.Registry, c restwire.Resource) *huma.Operation {
	op := operationOf(registry, c.Command, restwire.Method, c.Path, c.Title, c.About, c.Scope)
	op.Parameters = append(op.Parameters,
		&huma.Param{Name: restwire.HeaderKey, In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Pattern: operation.KeyPattern},
			Description: "Names this write for good: the same when it is sent again."},
		&huma.Param{Name: restwire.HeaderTimeout, In: "header", Schema: milliseconds(), Description: "How long the client waits. Nothing is committed after it."},
		header(restwire.HeaderTenant, "Must be the tenant of the token, if it is sent."),
		header(restwire.HeaderPrincipal, "For whom it is asked, with a token that may delegate: the key is that principal's."),
		header(restwire.HeaderTool, "The tool through which it is asked, with a token that may delegate."),
	)
	if c.Guards != nil {
		op.Parameters = append(op.Parameters, header("If-Match", "The ETag of the record that this was decided on: 412 if it has changed since."))
	}
	if c.Overrides != nil {
		op.Parameters = append(op.Parameters, header(restwire.HeaderOverride, "true: the principal that is named may override, with a token that may too. Never of a model's own accord."))
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: content(registry, restwire.TypeJSON, c.Fields)}
	outcome := content(registry, restwire.TypeJSON, reflect.TypeFor[restwire.Outcome]())
	op.Responses["201"] = &huma.Response{Description: "It happened.", Content: outcome}
	op.Responses["200"] = &huma.Response{Description: "It had happened before, under this key.", Content: outcome, Headers: map[string]*huma.Param{
		restwire.HeaderReplayed: {Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"true"}}},
	}}
	for status, about := range map[int]string{
		http.StatusConflict:            "A request with this key is still running: send the same again.",
		http.StatusUnprocessableEntity: "Refused by the rules, or the key was used for another request. Nothing has happened.",
		http.StatusGatewayTimeout:      "The time was over before it was decided. Nothing has happened.",
	} {
		op.Responses[strconv.Itoa(status)] = problemResponse(registry, about)
	}
	if c.Guards != nil {
		op.Responses["412"] = problemResponse(registry, "The record has changed since. Nothing has happened.")
	}
	return op
}

func readOperation(registry huma.Registry, r restwire.Read) *huma.Operation {
	op := operationOf(registry, r.Name, http.MethodGet, r.Path, r.Title, r.About, r.Scope)
	for _, q := range r.Query {
		schema := &huma.Schema{Type: huma.TypeString}
		if q.Number {
			schema = &huma.Schema{Type: huma.TypeInteger}
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.Name, In: "query", Description: q.About, Schema: schema})
	}
	ok := &huma.Response{Description: "Found.", Content: content(registry, restwire.TypeJSON, r.Answer)}
	if r.Tagged {
		ok.Headers = map[string]*huma.Param{"ETag": {Description: "The version, or another text that changes with the record.", Schema: &huma.Schema{Type: huma.TypeString}}}
	}
	op.Responses["200"] = ok
	if strings.Contains(r.Path, "{") && (r.Query == nil || r.Tagged) {
		op.Responses["404"] = problemResponse(registry, "There is none.")
	}
	return op
}

func operationOf(registry huma.Registry, id, method, path, title, about string, scope access.Scope) *huma.Operation {
	op := &huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: title, Description: about,
		Security:  []map[string][]string{{security: {}}},
		Responses: map[string]*huma.Response{"default": problemResponse(registry, "A problem.")},
	}
	if scope != (access.Scope{}) {
		op.Description += " Needs the scope " + scope.String() + "."
	}
	for _, name := range restwire.Parameters(path) {
		schema := &huma.Schema{Type: huma.TypeString}
		switch {
		case name == "number":
			schema.Type = huma.TypeInteger
		case name == "key":
			schema.Pattern = operation.KeyPattern
		case strings.HasPrefix(path, "/v1/customers/{id}"):
			schema.Pattern = customers.IDPattern
		case strings.HasPrefix(path, "/v1/invoices/{id}"):
			schema.Pattern = payables.InvoiceIDPattern
		case name == "id" && scope == access.InvoiceRead:
			schema.Pattern = payables.PartyIDPattern
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: schema})
	}
	return op
}

func header(name, about string) *huma.Param {
	return &huma.Param{Name: name, In: "header", Description: about, Schema: &huma.Schema{Type: huma.TypeString}}
}

func milliseconds() *huma.Schema {
	least, most := float64(restwire.MinTimeout.Milliseconds()), float64(restwire.MaxTimeout.Milliseconds())
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
}

func content(registry huma.Registry, media string, t reflect.Type) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: registry.Schema(t, true, t.Name())}}
}

func problemResponse(registry huma.Registry, about string) *huma.Response {
	return &huma.Response{Description: about, Content: content(registry, restwire.TypeProblem, reflect.TypeFor[restwire.Problem]())}
}
