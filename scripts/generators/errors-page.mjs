// docs/errors.md: the catalogue of src/ground/errors/index.ts.
import { errorCatalogue } from '../../src/ground/errors/index.ts'

const head = `<!-- Generated from src/ground/errors/index.ts by npm run generate; do not edit. -->

# Errors

This page lists every error response of the gateway itself, and every error that it only reports. A code identifies one situation and is never reused. \`source\` is the side that caused the error. \`retry\` shows whether the gateway may send the request again (\`reused\`: only if the connection had served a request before). Status 0 means that the error does not concern a request.

The response is \`text/plain\` with the text of the row. A gRPC request gets HTTP 200 with \`grpc-status\` and \`grpc-message\` instead. Both have the field \`proxy-status: sluice; error=…\` (RFC 9209), which shows that the gateway made the response, and why. Refusals of policies have \`error=http_request_denied\`.

| code | status | source | retry | reason | proxy-status | text | when |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

export function generate() {
  const rows = Object.entries(errorCatalogue).map(
    ([code, { status, source, retry, reason, proxyError, text, doc }]) =>
      `| \`${code}\` | ${status} | ${source} | ${retry} | ${reason} | ${proxyError} | ${text} | ${doc} |\n`,
  )
  return { 'docs/errors.md': head + rows.join('') }
}
