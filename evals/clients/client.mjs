// Lists and calls the server's tools with the official TypeScript clients.
// node client.mjs v1|v2|v2-2026-07-28 COMMAND
// node client.mjs v1|v2|v2-2026-07-28 URL TOKEN
import assert from "node:assert/strict";

const [era, server, token] = process.argv.slice(2);
const { Client, StdioClientTransport, StreamableHTTPClientTransport } =
  era === "v1"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      }
    : {
        ...(await import("@modelcontextprotocol/client")),
        ...(await import("@modelcontextprotocol/client/stdio")),
      };

const [, pin] = era.split(/^v2-/);
const client = new Client(
  { name: `typescript-${era}`, version: "1" },
  pin && { versionNegotiation: { mode: { pin } } },
);
await client.connect(
  token
    ? new StreamableHTTPClientTransport(new URL(server), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
    : new StdioClientTransport({ command: server, stderr: "inherit" }),
);
if (pin) assert.equal(client.getNegotiatedProtocolVersion(), pin);

const names = (await client.listTools()).tools.map((t) => t.name).sort();
assert.deepEqual(names, ["get_customer_record", "trigger_refund"]);

const call = (name, args, key) =>
  client.callTool({ name, arguments: args, ...(key && { _meta: { "refundledger.dev/operation-key": key } }) });

const record = await call("get_customer_record", { customer_id: "CUST-00001" });
assert.equal(record.structuredContent.refundableBalance, 500);
const request = { customer_id: "CUST-00001", amount: 12.5, reason: "Item arrived damaged" };
const refund = await call("trigger_refund", request, "k1");
assert.equal(refund.structuredContent.remainingRefundableBalance, 487.5);
const again = await call("trigger_refund", request, "k1");
assert.deepEqual(again.structuredContent, refund.structuredContent);
assert.equal(again._meta["refundledger.dev/replayed"], true);
const refused = await call("trigger_refund", { ...request, amount: 9999 });
assert.equal(refused.isError, true);
assert.match(refused.content[0].text, /exceeds/);
await assert.rejects(call("trigger_refund", { ...request, amount: "10" }), (e) => e.code === -32602);

await client.close();
console.log(`${era}: all as it must be`);
