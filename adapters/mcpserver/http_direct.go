package mcpserver

import (
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// Headers of the sessionless protocol, which repeat what the body says.
const (
	headerOfMethod    = "Mcp-Method"
	headerOfName      = "Mcp-Name"
	headerOfLastEvent = "Last-Event-Id"
)

// plainCall reports whether a tools/call of the sessionless protocol is one
// that the SDK would hand to the tool as it is, so that it can be answered
// without it. Whatever is unusual is left to the SDK, whose answer it is to
// give: this may say no too often, never yes.
func plainCall(header http.Header, m message) bool {
	if !m.newEra || !only(header, headerOfVersion, sessionless) || !only(header, headerOfMethod, methodToolsCall) ||
		!only(header, headerOfName, m.call.Name) || len(header[headerOfLastEvent]) > 0 {
		return false
	}
	for name := range m.params.Members() {
		if !name.Is("name") && !name.Is("arguments") && !name.Is("_meta") {
			return false
		}
	}
	capable := false
	for name, member := range m.call.Meta.Members() {
		switch {
		case name.Is(metaVersion):
			if !member.Is(sessionless) {
				return false
			}
		case name.Is(mcp.MetaKeyClientInfo):
			if !fits(member, plainInfo, new(mcp.Implementation)) {
				return false
			}
		case name.Is(mcp.MetaKeyClientCapabilities):
			if capable = fits(member, isEmpty, new(mcp.ClientCapabilities)); !capable {
				return false
			}
		}
	}
	return capable
}

// only reports whether a header was sent once, with this value.
func only(header http.Header, name, value string) bool {
	sent := header[name]
	return len(sent) == 1 && sent[0] == value
}

// fits reports whether an object can be read into a type of the SDK. What is
// plain, as nearly all are, need not be tried.
func fits(v strictjson.Value, plain func(strictjson.Value) bool, into any) bool {
	return v.Kind() == strictjson.KindObject && (plain(v) || json.Unmarshal(v.Raw(), into) == nil)
}

func isEmpty(object strictjson.Value) bool {
	for range object.Members() {
		return false
	}
	return true
}

// plainInfo reports whether a client says of itself no more than texts.
func plainInfo(object strictjson.Value) bool {
	for name, member := range object.Members() {
		if member.Kind() != strictjson.KindString || !name.Is("name") && !name.Is("version") && !name.Is("title") {
			return false
		}
	}
	return true
}
