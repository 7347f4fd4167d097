package mcpserver

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/fault"
)

// answer is the outcome of a call in words: structured content, or a fault.
type answer struct {
	structured []byte
	refused    *fault.Error
	key        string // the operation key, "" for a tool that changes nothing
	replayed   bool
}

// refusal is the second block of a refusal: what a program reads of it.
type refusal struct {
	Error struct {
		Code      string `json:"code"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
		Retryable bool   `json:"retryable"`
		Details   any    `json:"details,omitempty"`
	} `json:"error"`
}

func (a answer) refusal() []byte {
	var r refusal
	r.Error.Code, r.Error.Reason, r.Error.Message = a.refused.Code.String(), a.refused.Reason, a.refused.Message
	r.Error.Retryable, r.Error.Details = a.refused.Retryable, a.refused.Details
	b, err := encode(r)
	if err != nil {
		panic(err) // details are structs of texts and numbers
	}
	return b
}

// encode returns the result object. The text block and the structured content
// are the same bytes. A result of the sessionless protocol says that it is
// complete, and which server it is from; another has no server.
func (a answer) encode(server []byte) []byte {
	b := make([]byte, 0, 256+len(server)+2*len(a.structured)+len(a.structured)/4) // the quotes in the text block are escaped
	b = append(b, '{')
	if server != nil {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"content":[{"type":"text","text":`...)
	if a.refused != nil {
		b = strictjson.AppendString(b, a.refused.Message)
		b = append(b, `},{"type":"text","text":`...)
		b = strictjson.AppendString(b, a.refusal())
		b = append(b, `}],"isError":true`...)
	} else {
		b = strictjson.AppendString(b, a.structured)
		b = append(b, `}],"structuredContent":`...)
		b = append(b, a.structured...)
	}
	switch {
	case a.key != "":
		b = append(b, `,"_meta":{"`+MetaKey+`":"`...) // a key needs no quoting
		b = append(b, a.key...)
		b = append(b, '"')
		if a.replayed {
			b = append(b, `,"`+MetaReplayed+`":true`...)
		}
		if server != nil {
			b = append(b, `,"`+mcp.MetaKeyServerInfo+`":`...)
			b = append(b, server...)
		}
		b = append(b, '}')
	case server != nil:
		b = append(b, `,"_meta":{"`+mcp.MetaKeyServerInfo+`":`...)
		b = append(append(b, server...), '}')
	}
	return append(b, '}')
}

// result returns the same for the SDK to encode.
func (a answer) result() *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	if a.refused != nil {
		r.IsError = true
		r.Content = []mcp.Content{&mcp.TextContent{Text: a.refused.Message}, &mcp.TextContent{Text: string(a.refusal())}}
	} else {
		r.Content = []mcp.Content{&mcp.TextContent{Text: string(a.structured)}}
		r.StructuredContent = json.RawMessage(a.structured)
	}
	if a.key != "" {
		r.Meta = mcp.Meta{MetaKey: a.key}
		if a.replayed {
			r.Meta[MetaReplayed] = true
		}
	}
	return r
}
