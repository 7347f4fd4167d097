package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// Methods the transport treats in its own way.
const (
	methodInitialize  = "initialize"
	methodPing        = "ping"
	methodToolsCall   = "tools/call"
	methodListen      = "subscriptions/listen"
	notifyInitialized = "notifications/initialized"
	notifyCancelled   = "notifications/cancelled"
)

// Versions of the protocol. From sessionless on, each request names its version
// in _meta and there is no initialize.
const (
	sessionless   = "2026-07-28"
	newestClassic = "2025-11-25"
	metaVersion   = "io.modelcontextprotocol/protocolVersion"
)

var classicVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", newestClassic}

// maxSafeInteger is the largest id that every JSON reader keeps exact.
const maxSafeInteger = 1<<53 - 1

// lineSort says what a line turned out to be.
type lineSort uint8

const (
	// unreadable: no message, or one whose id can not be trusted. It is logged
	// and never answered: an answer with a null id ends some clients.
	unreadable lineSort = iota
	refused             // a request that gets an error at once
	request
	notification
	response // to something we never asked
)

// message is a line that the gate looked at.
type message struct {
	sort   lineSort
	reason string         // why it is unreadable; holds nothing of the line
	noJSON bool           // it is unreadable because it is no JSON
	failed *jsonrpc.Error // why it is refused
	id     messageID
	method string
	params strictjson.Value
	// newEra: the request follows the sessionless protocol.
	newEra bool
	call   toolCall // of a tools/call
}

// inspect is the gate: what passes is a JSON-RPC message that has one meaning
// only, whoever reads it.
func inspect(line []byte) message {
	document, err := strictjson.Check(line)
	if err != nil {
		if err == strictjson.ErrNotUTF8 {
			return message{noJSON: true, reason: err.Error()}
		}
		return message{noJSON: true, reason: "not JSON: " + err.Error()}
	}
	switch document.Kind() {
	case strictjson.KindObject:
	case strictjson.KindArray:
		return message{reason: "an array: batches are not supported"}
	default:
		return message{reason: "not an object"}
	}
	var version, id, method, params strictjson.Value
	ids, outcome := 0, false
	for name, member := range document.Members() {
		switch {
		case name.Is("jsonrpc"):
			version = member
		case name.Is("id"):
			id = member
			ids++
		case name.Is("method"):
			method = member
		case name.Is("params"):
			params = member
		case name.Is("result"), name.Is("error"):
			outcome = true
		}
	}
	m := message{method: methodToolsCall, params: params}
	called := method.Is(methodToolsCall)
	switch {
	case !version.Is("2.0"):
		return message{reason: `jsonrpc is not "2.0"`}
	case ids > 1:
		return message{reason: "more than one id"}
	case ids == 1:
		var ok bool
		if m.id, ok = readID(id); !ok {
			return message{reason: "the id is neither a string nor a safe integer"}
		}
	}
	switch {
	case method.Kind() == strictjson.KindAbsent && outcome && ids == 1:
		return message{sort: response}
	case method.Kind() == strictjson.KindAbsent:
		return message{reason: "neither a request nor a response"}
	case method.Kind() != strictjson.KindString:
		return message{reason: "the method is not a string"}
	case outcome:
		return message{reason: "both a request and a response"}
	}
	switch params.Kind() {
	case strictjson.KindAbsent, strictjson.KindNull, strictjson.KindObject:
	default:
		return message{reason: "params is not an object"}
	}
	// The arguments of a tool are judged with the tool's own rules, and reported
	// problem by problem.
	if called {
		err = document.Wellformed("params", "arguments")
	} else {
		err = document.Wellformed()
	}
	if err != nil && ids == 0 {
		return message{reason: err.Error()}
	}
	if err != nil {
		m.sort, m.failed = refused, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + err.Error()}
		return m
	}
	if !called {
		m.method, _ = method.Text() // it is wellformed
	}
	if ids == 0 {
		m.sort = notification
		return m
	}
	m.sort = request
	switch {
	case params.Kind() == strictjson.KindNull:
		m.refuse("params must be an object, not null")
	case called:
		m.inspectCall()
	case m.method == methodInitialize && !isSessionless(params.Lookup("_meta")):
		m.inspectInitialize()
	default:
		m.newEra = isSessionless(params.Lookup("_meta"))
	}
	return m
}

// isSessionless reports whether meta says that its request follows the
// sessionless protocol.
func isSessionless(meta strictjson.Value) bool {
	text, err := meta.Lookup(metaVersion).Text()
	return err == nil && text >= sessionless
}

// inspectCall takes the params of a tools/call apart.
func (m *message) inspectCall() {
	var name strictjson.Value
	for n, member := range m.params.Members() {
		switch {
		case n.Is("name"):
			name = member
		case n.Is("arguments"):
			m.call.Arguments = member
		case n.Is("_meta"):
			m.call.Meta = member
		}
	}
	switch m.call.Meta.Kind() {
	case strictjson.KindAbsent:
	case strictjson.KindObject:
		m.newEra = isSessionless(m.call.Meta)
	default:
		m.refuse("_meta must be an object")
		return
	}
	text, err := name.Text()
	if err != nil {
		m.refuse("tools/call needs the name of a tool, a string")
		return
	}
	m.call.Name = text
}

// inspectInitialize makes sure that the classic initialize negotiates a classic
// version: asked for a sessionless one, the SDK would answer with a classic one
// and leave its session half in the new era.
func (m *message) inspectInitialize() {
	version := m.params.Lookup("protocolVersion")
	text, err := version.Text()
	if err != nil {
		m.refuse("initialize needs a protocolVersion, a string")
		return
	}
	if slices.Contains(classicVersions, text) {
		return
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(m.params.Raw(), &members)
	if err == nil {
		members["protocolVersion"] = json.RawMessage(`"` + newestClassic + `"`)
		var rewritten []byte
		if rewritten, err = json.Marshal(members); err == nil {
			m.params, err = strictjson.Check(rewritten)
		}
	}
	if err != nil {
		m.refuse("the params of initialize can not be read")
	}
}

func (m *message) refuse(why string) {
	m.sort, m.failed = refused, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + why}
}

// messageID is the id of a request.
type messageID struct {
	raw []byte // as it was sent, and goes back
	// key tells ids apart: the digits of a number, or a quote and the text of a
	// string, however that was escaped.
	key string
}

// readID reads an id that is a string or an integer written plainly: an id like
// 1e3 or 2^60 comes back from some readers as another one.
func readID(v strictjson.Value) (messageID, bool) {
	raw := v.Raw()
	switch v.Kind() {
	case strictjson.KindString:
		if bytes.IndexByte(raw, '\\') < 0 {
			return messageID{raw, string(raw[:len(raw)-1])}, true
		}
		text, err := v.Text()
		return messageID{raw, `"` + text}, err == nil
	case strictjson.KindNumber:
		key := string(raw)
		n, err := strconv.ParseInt(key, 10, 64)
		return messageID{raw, key}, err == nil && -maxSafeInteger <= n && n <= maxSafeInteger && key != "-0"
	}
	return messageID{}, false
}

// forSession is the id as the SDK wants it.
func (id messageID) forSession() (jsonrpc.ID, error) {
	if id.key[0] == '"' {
		return jsonrpc.MakeID(id.key[1:])
	}
	n, err := strconv.ParseInt(id.key, 10, 64)
	if err != nil {
		return jsonrpc.ID{}, err
	}
	return jsonrpc.MakeID(float64(n))
}

// keyOf is the key of an id that comes back from the SDK.
func keyOf(id jsonrpc.ID) string {
	switch v := id.Raw().(type) {
	case string:
		return `"` + v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// cancelledKey returns the key of the request that a notifications/cancelled
// names, if it names one.
func cancelledKey(params strictjson.Value) (string, bool) {
	id, ok := readID(params.Lookup("requestId"))
	return id.key, ok
}
